// Package app constructs ductor from a configuration: it connects store, agents, orchestrator, bot and timers, runs them,
// and ends them in the opposite order. It alone translates configuration into options of the packages.
//
// It is not the command: flags, subcommands, signals and exit codes are in cmd/ductor. It has no logic of the domain.
package app
