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
