package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Things is a Shelf of items that are removed one by one, those unused for longest first.
type Things struct {
	// List returns all items. With an error, it returns the items that it found.
	List func(context.Context) ([]Thing, error)
	// InUse returns a time: items used after it may be in use and stay. Nil protects nothing.
	InUse func() time.Time
}

// Thing is an item of Things.
type Thing struct {
	Used  time.Time
	Bytes int64
	// Forget removes the item. If it returns ErrInUse, the item stays, which is no failure.
	Forget func(context.Context) error
}

// ErrInUse means that a Thing must stay.
var ErrInUse = errors.New("it is in use")

// Plan implements Shelf.
func (s Things) Plan(ctx context.Context, c Cut) (Trimmed, error) {
	all, err := s.List(ctx)
	_, t := s.selectOld(all, c)
	return t, err
}

// Trim implements Shelf.
func (s Things) Trim(ctx context.Context, c Cut) (Trimmed, error) {
	all, err := s.List(ctx)
	gone, t := s.selectOld(all, c)
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
			errs = append(errs, fmt.Errorf("remove unused data: %w", err))
		}
	}
	return t, errors.Join(errs...)
}

// selectOld selects the items that go.
func (s Things) selectOld(all []Thing, c Cut) (gone []Thing, t Trimmed) {
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
