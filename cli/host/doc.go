// Package host starts agents on this host: a cli.Launcher over a runner that outlives ductor, homes for sessions, and the
// memory that agents may take.
//
// It is not the runner, which is a process of its own (internal/runner), and it knows no dialect and no turn.
// Package docker builds its launcher on this one, with runs in containers.
package host
