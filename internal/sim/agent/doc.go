// Package agent is a scripted coding agent: a program that speaks the protocols of Claude Code, Codex, Gemini
// and Copilot as recorded from the real ones, or one of its own (PlainLine), and does what the directives in its prompt say
// (package script).
//
// It is run as a process of its own: by the hidden subcommand of ductor, or by a test binary that runs
// itself again under the name of the agent (Install and RunIfChild). It remembers its sessions in
// $DUCTOR_SIM_HOME, in $HOME/.ductor-sim, or where InstallAt says.
//
// It asks no model and needs no account. It is not a sandbox: the shell commands of a script are run.
package agent
