// Package host starts agents on this host. It contains a cli.Launcher whose processes survive ductor, home directories
// for sessions, and the memory limit for agents.
//
// A separate process, the runner, supervises each program; see package internal/runner. Package host knows no agent's
// protocol and no turns. Package docker uses its Launcher for containers.
package host
