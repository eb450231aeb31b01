// Package keys keeps the API keys of agents: one file for each in ductor's state directory, or in the credentials that
// systemd gives to a service. A file is named AGENT.NAME, such as codex.OPENAI_API_KEY; NAME is the variable in which the
// agent gets the key.
package keys
