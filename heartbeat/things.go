package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Things is a Shelf of things that are listed and removed one by one, the longest unused first.
type Things struct {
	// List lists all things. With an error it lists those that it found.
	List func(context.Context) ([]Thing, error)
	// InUse is since when something may be in use: what was used later stays. Nil spares nothing.
	InUse func() time.Time
}

// Thing is one of Things.
type Thing struct {
	Used  time.Time
	Bytes int64
	// Forget removes it. ErrInUse keeps it, and is no failure.
	Forget func(context.Context) error
}

// ErrInUse keeps a Thing.
var ErrInUse = errors.New("it is in use")

// Plan says what Trim would take.
func (s Things) Plan(ctx context.Context, c Cut) (Trimmed, error) {
	all, err := s.List(ctx)
	_, t := s.cut(all, c)
	return t, err
}

// Trim removes things, the longest unused first.
func (s Things) Trim(ctx context.Context, c Cut) (Trimmed, error) {
	all, err := s.List(ctx)
	gone, t := s.cut(all, c)
	errs := []error{err}
	for _, thing := range gone {
		err := ctx.Err()
		if err == nil {
			err = thing.Forget(ctx)
		}
		if err == nil {
			continue
		}
		t.Take(-1, -thing.Bytes)
		if !errors.Is(err, ErrInUse) {
			errs = append(errs, fmt.Errorf("forget what was not used for long: %w", err))
		}
	}
	return t, errors.Join(errs...)
}

// cut parts what goes from what stays.
func (s Things) cut(all []Thing, c Cut) (gone []Thing, t Trimmed) {
	slices.SortFunc(all, func(a, b Thing) int { return a.Used.Compare(b.Used) })
	t.LeftItems = int64(len(all))
	for _, thing := range all {
		t.LeftBytes += thing.Bytes
	}
	for i, thing := range all {
		inUse := s.InUse != nil && thing.Used.After(s.InUse())
		if inUse || !c.Goes(t, thing.Used) {
			return all[:i], t
		}
		t.Take(1, thing.Bytes)
	}
	return all, t
}
