// Package app constructs ductor from a configuration: it connects store, agents, orchestrator, bot and timers, runs them,
// and ends them in the opposite order. It alone translates configuration into options of the packages.
//
// It is not the command: flags, subcommands, signals and exit codes are in cmd/ductor. It has no logic of the domain.
package app

import "errors"

// The kinds of errors that have an exit code of their own.
var (
	ErrConfig   = errors.New("configuration")
	ErrToken    = errors.New("token refused")
	ErrInstance = errors.New("another instance")
)

// OfKind gives err a kind for errors.Is, and keeps its text.
func OfKind(kind, err error) error { return kinded{err, kind} }

type kinded struct {
	error
	kind error
}

func (k kinded) Is(target error) bool { return target == k.kind }
func (k kinded) Unwrap() error        { return k.error }
