// Package agent is a scripted coding agent for tests and the demo. It speaks the protocols of Claude Code, Codex,
// Gemini and Copilot, which were recorded from the real agents. It also speaks a simple protocol that no real agent
// uses (PlainLine). Directives in its prompt control it (see package script).
//
// It runs as a separate process: as a hidden subcommand of ductor, or as a test binary that starts itself under the
// name of an agent (Install and RunIfChild). It stores its sessions in $DUCTOR_SIM_HOME, in $HOME/.ductor-sim, or in
// the directory passed to InstallAt.
//
// It calls no model and needs no account. It is not a sandbox: it really runs the shell commands of a script.
package agent
