// Package host starts agents on this host: a cli.Launcher over supervisors that outlive ductor, homes for sessions, and the
// memory that agents may take.
//
// It is not the supervisor, which is a process of its own (internal/supervisor), and it knows no dialect and no turn.
// Package docker builds its launcher on this one, with supervisors in containers.
package host
