package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Things is a Shelf of Things. It removes them one by one, those unused for longest first.
type Things struct {
	// List returns all items. With an error, it returns the items that it found.
	List func(context.Context) ([]Thing, error)
	// InUse returns a time. Items that were used after it may still be in use, so they stay. A nil InUse protects no
	// item.
	InUse func() time.Time
}

// Thing is data that can be removed on its own, such as a file.
type Thing struct {
	Used  time.Time
	Bytes int64
	// Forget removes the item. If the item is in use, it stays and Forget returns ErrInUse, which does not count as a
	// failure.
	Forget func(context.Context) error
}

// ErrInUse means that a Thing is in use and was not removed.
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

// selectOld returns the items that the cut removes, and counts them.
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
