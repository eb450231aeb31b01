// Package copilot lets ductor use the GitHub Copilot CLI. It has two modes. In live mode, it speaks JSON-RPC with the
// program `copilot --headless --stdio`, the server that Copilot's SDK uses (protocol 3, with Content-Length headers).
// In one-shot mode, each turn is a process of `copilot --output-format json`.
//
// Sessions with the same environment share a live process. Both modes print the same events, so one parser reads them.
// The CLI unpacks the schemas of the protocol into its cache (api.schema.json, session-events.schema.json). This
// package follows those of version 1.0.102.
//
// The package does not use GitHub's API.
package copilot
