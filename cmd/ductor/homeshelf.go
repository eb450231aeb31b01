package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/docker"
	"ductor/heartbeat"
)

// homeShelf is the heartbeat.Shelf of the homes that sessions have of their own, on this machine and in the sandboxes
// that run, and of the homes of sandboxes that are configured no longer.
type homeShelf struct {
	list func(context.Context) ([]keptHome, error)
	busy time.Duration // a home that was used in that time may be in use, and stays
	now  func() time.Time
}

// keptHome is one of them.
type keptHome struct {
	used   time.Time
	bytes  int64
	forget func(context.Context) error
}

// homeShelf is that of a house.
func (h *house) homeShelf() homeShelf {
	return homeShelf{list: h.keptHomes, busy: max(h.cfg.Agents.TurnTimeout, h.cfg.Agents.IdleLimit), now: time.Now}
}

// keptHomes are all of them, those that could be listed where others could not.
func (h *house) keptHomes(ctx context.Context) (all []keptHome, err error) {
	var errs []error
	if h.homes != nil {
		infos, err := h.homes.List(ctx)
		errs = append(errs, err)
		for _, i := range infos {
			all = append(all, keptHome{i.Used, i.Bytes, func(ctx context.Context) error { return h.homes.Forget(ctx, i.Name) }})
		}
	}
	for _, r := range h.boxes.rooms {
		if r.launcher == nil {
			continue
		}
		if status, err := r.launcher.Status(ctx); err != nil || status.Is != docker.StateRunning {
			continue // another time
		}
		homes, err := r.launcher.SessionHomes(ctx)
		errs = append(errs, err)
		for _, i := range homes {
			all = append(all, keptHome{i.Used, i.Bytes, func(ctx context.Context) error { return r.launcher.ForgetHome(ctx, i.Name) }})
		}
	}
	former, err := h.boxes.formerHomes(ctx)
	return append(all, former...), errors.Join(append(errs, err)...)
}

// formerHomes are those of sandboxes that are configured no longer, in the engines that are used.
func (s *sandboxes) formerHomes(ctx context.Context) (all []keptHome, err error) {
	var errs []error
	for _, e := range s.engines {
		homes, err := e.Homes(ctx, s.owner(), s.path(dockerDir))
		errs = append(errs, err)
		for _, home := range homes {
			if slices.ContainsFunc(s.rooms, func(r *room) bool { return r.name == home.Name }) {
				continue
			}
			all = append(all, keptHome{home.Used, 0, func(ctx context.Context) error { return e.Forget(ctx, s.owner(), home.Name) }})
		}
	}
	return all, errors.Join(errs...)
}

// Plan says what Trim would take.
func (s homeShelf) Plan(ctx context.Context, c heartbeat.Cut) (heartbeat.Trimmed, error) {
	all, err := s.list(ctx)
	_, t := s.cut(all, c)
	return t, err
}

// Trim removes homes, the longest unused first.
func (s homeShelf) Trim(ctx context.Context, c heartbeat.Cut) (heartbeat.Trimmed, error) {
	all, err := s.list(ctx)
	gone, t := s.cut(all, c)
	errs := []error{err}
	for _, home := range gone {
		if err := home.forget(ctx); err != nil {
			t.Items, t.Bytes, t.LeftItems, t.LeftBytes = t.Items-1, t.Bytes-home.bytes, t.LeftItems+1, t.LeftBytes+home.bytes
			errs = append(errs, fmt.Errorf("forget a home: %w", err))
		}
	}
	return t, errors.Join(errs...)
}

// cut parts what goes from what stays.
func (s homeShelf) cut(all []keptHome, c heartbeat.Cut) (gone []keptHome, t heartbeat.Trimmed) {
	slices.SortFunc(all, func(a, b keptHome) int { return a.used.Compare(b.used) })
	t.LeftItems = int64(len(all))
	for i, home := range all {
		t.LeftBytes += home.bytes
		if i == 0 {
			t.Oldest = home.used
		}
	}
	inUse := s.now().Add(-s.busy)
	for i, home := range all {
		old := !c.Before.IsZero() && home.used.Before(c.Before)
		if home.used.After(inUse) || !old && (c.Bytes == 0 || t.LeftBytes <= c.Bytes) {
			return all[:i], t
		}
		t.Items, t.Bytes = t.Items+1, t.Bytes+home.bytes
		t.LeftItems, t.LeftBytes = t.LeftItems-1, t.LeftBytes-home.bytes
	}
	return all, t
}
