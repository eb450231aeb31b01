// Package keys stores the API keys of agents, one file per key. It reads them from ductor's state directory and from
// the credentials that systemd passes to a service. The name of a file is AGENT.NAME, such as codex.OPENAI_API_KEY. The
// agent gets the key in the environment variable NAME.
package keys
