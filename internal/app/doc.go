// Package app constructs ductor from a configuration: it connects store, agents, orchestrator, bot and timers, runs
// them, and closes them in reverse order. It is the only package that converts the configuration to options of other
// packages. The owner, who gets messages about the machine, is the first user with the role "owner" in
// telegram.allowed_users.
//
// Package app contains no domain logic. Flags, subcommands, signals and exit codes belong to cmd/ductor.
package app

import "errors"

// Kinds of errors. ductor exits with a different code for each kind.
var (
	ErrConfig   = errors.New("configuration")
	ErrToken    = errors.New("token refused")
	ErrInstance = errors.New("another instance")
)

// WithKind returns an error that has the text of err and wraps both err and kind.
func WithKind(kind, err error) error { return kinded{err, kind} }

type kinded struct {
	error
	kind error
}

func (k kinded) Is(target error) bool { return target == k.kind }
func (k kinded) Unwrap() error        { return k.error }
