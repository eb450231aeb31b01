package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Items is a Dataset that removes single Items, the longest unused first.
type Items struct {
	// List returns all items. If it fails, it returns the items that it found and the error.
	List func(context.Context) ([]Item, error)
	// InUse returns a time. Trim removes no item that was used after this time, because the item may still be in use. A
	// nil InUse protects no item.
	InUse func() time.Time
}

// Item is data that can be removed on its own, such as a file.
type Item struct {
	Used  time.Time
	Bytes int64
	// Remove removes the item. It returns ErrInUse if the item is in use; Trim does not count that as a failure.
	Remove func(context.Context) error
}

// ErrInUse means that an Item is in use and was not removed.
var ErrInUse = errors.New("it is in use")

// Plan implements Dataset.
func (s Items) Plan(ctx context.Context, c Cutoff) (TrimStats, error) {
	all, err := s.List(ctx)
	_, t := s.selectOld(all, c)
	return t, err
}

// Trim implements Dataset.
func (s Items) Trim(ctx context.Context, c Cutoff) (TrimStats, error) {
	all, err := s.List(ctx)
	gone, t := s.selectOld(all, c)
	errs := []error{err}
	for _, thing := range gone {
		err := ctx.Err()
		if err == nil {
			err = thing.Remove(ctx)
		}
		if err == nil {
			continue
		}
		t.CountRemoved(-1, -thing.Bytes)
		if !errors.Is(err, ErrInUse) {
			errs = append(errs, fmt.Errorf("remove unused data: %w", err))
		}
	}
	return t, errors.Join(errs...)
}

// selectOld returns the items to remove. It counts these items and the remaining ones.
func (s Items) selectOld(all []Item, c Cutoff) (gone []Item, t TrimStats) {
	slices.SortFunc(all, func(a, b Item) int { return a.Used.Compare(b.Used) })
	t.LeftItems = int64(len(all))
	for _, thing := range all {
		t.LeftBytes += thing.Bytes
	}
	for i, thing := range all {
		inUse := s.InUse != nil && thing.Used.After(s.InUse())
		if inUse || !c.Removes(t, thing.Used) {
			return all[:i], t
		}
		t.CountRemoved(1, thing.Bytes)
	}
	return all, t
}
