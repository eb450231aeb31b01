// Package keys stores the API keys of agents, one file for each. It reads them from ductor's state directory and from
// the credentials that systemd passes to a service. A file is named AGENT.NAME, such as codex.OPENAI_API_KEY; the agent
// gets the key in the environment variable NAME.
package keys
