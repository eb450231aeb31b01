package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Items is a Dataset of separate items. It removes the least recently used items first.
type Items struct {
	// List returns all items. If it fails, it returns the error and the items that it found.
	List func(context.Context) ([]Item, error)
	// InUse returns a time. Trim does not remove items that were used after this time, because they may still be in
	// use. If InUse is nil, Trim may remove all items.
	InUse func() time.Time
}

// Item is data that can be removed on its own, such as a file.
type Item struct {
	Used  time.Time
	Bytes int64
	// Remove removes the item. If the item is in use, Remove returns ErrInUse, which Trim does not report as an error.
	Remove func(context.Context) error
}

// ErrInUse means that an Item was not removed because it is in use.
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

// selectOld returns the items to remove, and counts removed and remaining items.
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
