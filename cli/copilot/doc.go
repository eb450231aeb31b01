// Package copilot is the dialect of the GitHub Copilot CLI: `copilot --headless --stdio` for live sessions, which is
// the server its SDK speaks with (JSON-RPC in frames, protocol 3), and `copilot --output-format json` for turns that
// are a process each.
//
// One live process hosts many sessions: those whose environment is the same share it. The events of both modes
// are the same and are read by one parser. The protocol is that of the schemas which the CLI unpacks into its cache
// (api.schema.json, session-events.schema.json), version 1.0.102.
//
// It is not GitHub's API, and it does not log anybody in.
package copilot
