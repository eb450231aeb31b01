// Package copilot implements the GitHub Copilot CLI agent. Live sessions use `copilot --headless --stdio`, the server
// of Copilot's SDK (framed JSON-RPC, protocol 3). One-shot turns use one `copilot --output-format json` process each.
//
// Sessions with the same environment share a live process. Both modes have the same events, which one parser reads. The
// protocol is defined by the schemas that the CLI unpacks into its cache (api.schema.json, session-events.schema.json),
// version 1.0.102.
//
// The package does not use GitHub's API and does not log in users.
package copilot
