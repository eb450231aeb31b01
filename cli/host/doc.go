// Package host starts agents on this host. It contains a cli.Launcher that uses a runner which survives ductor, home
// directories for sessions, and the memory limit for agents.
//
// The runner itself is a separate process (internal/runner). The package knows no dialects and no turns. Package docker
// extends its launcher with runs in containers.
package host
