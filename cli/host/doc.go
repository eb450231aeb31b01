// Package host starts agents on this host. It contains a cli.Launcher over a runner that survives ductor, home
// directories for sessions, and the memory limit for agents.
//
// The runner itself is a separate process (internal/runner). The package knows no dialect and no turn. Package docker
// builds its launcher on this one, with runs in containers.
package host
