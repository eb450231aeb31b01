// Package agent is a scripted coding agent. It speaks the recorded protocols of Claude Code, Codex, Gemini and
// Copilot, or its own (PlainLine), and follows the directives in its prompt (package script).
//
// It runs as a separate process: through a hidden subcommand of ductor, or as a test binary that starts itself under
// the name of an agent (Install and RunIfChild). It stores its sessions in $DUCTOR_SIM_HOME, in $HOME/.ductor-sim, or
// in the directory passed to InstallAt.
//
// It calls no model and needs no account. It is not a sandbox: it really runs the shell commands of a script.
package agent
