// Package host starts agents on this host. It contains a cli.Launcher that uses a runner which survives ductor, home
// directories for sessions, and the memory limit for agents.
//
// The runner itself is a separate process; see package internal/runner. Package host knows no dialects and no turns.
// Package docker uses its Launcher for runs in containers.
package host
