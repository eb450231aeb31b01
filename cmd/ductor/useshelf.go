package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/docker"
	"ductor/heartbeat"
	"ductor/internal/config"
)

// useShelf is the heartbeat.Shelf of things that go when they were not used for long: homes and containers.
type useShelf struct {
	list func(context.Context) ([]keptThing, error)
	busy time.Duration // what was used in that time may be in use, and stays
	now  func() time.Time
}

// keptThing is a home or a container.
type keptThing struct {
	used   time.Time
	bytes  int64
	forget func(context.Context) error // errInUse where it must stay
}

var errInUse = errors.New("it is in use")

// inUse makes an error of what did not go.
func inUse(gone bool, err error) error {
	if err == nil && !gone {
		err = errInUse
	}
	return err
}

// homeShelf has the homes that sessions have of their own, on this machine and in sandboxes, and the homes of
// sandboxes that are configured no longer.
func (a *app) homeShelf() useShelf {
	return useShelf{list: a.keptHomes, busy: max(a.cfg.Agents.TurnTimeout, a.cfg.Agents.IdleLimit), now: time.Now}
}

// keptHomes are all of them, those that could be listed where others could not.
func (a *app) keptHomes(ctx context.Context) (all []keptThing, err error) {
	var errs []error
	if a.homes != nil {
		infos, err := a.homes.List(ctx)
		errs = append(errs, err)
		for _, i := range infos {
			all = append(all, keptThing{i.Used, i.Bytes, func(ctx context.Context) error { return a.homes.Forget(ctx, i.Name) }})
		}
	}
	there, whole, err := a.sandboxes.sortHomes(ctx)
	errs = append(errs, err)
	for _, b := range there {
		homes, err := b.sessionHomes(ctx)
		errs = append(errs, err)
		for _, i := range homes {
			all = append(all, keptThing{i.Used, i.Bytes, func(ctx context.Context) error { return b.launcher.ForgetHome(ctx, i.Name) }})
		}
	}
	return append(all, whole...), errors.Join(errs...)
}

// sortHomes finds the sandboxes that have a home in their engines, and the homes that go as a whole: those of one
// conversation, and of sandboxes that are configured no longer.
func (s *sandboxes) sortHomes(ctx context.Context) (there []*sandbox, whole []keptThing, err error) {
	var errs []error
	for _, e := range s.engines {
		homes, err := e.Homes(ctx, s.owner(), s.path(dockerDir))
		errs = append(errs, err)
		for _, home := range homes {
			b := s.find(cli.Sandbox(home.Name))
			switch {
			case b == nil:
				whole = append(whole, keptThing{home.Used, 0, func(ctx context.Context) error { return e.Forget(ctx, s.owner(), home.Name) }})
			case b.launcher == nil || b.engine != e:
			case cli.Sandbox(home.Name).Alone() != "":
				whole = append(whole, keptThing{home.Used, 0, func(ctx context.Context) error {
					return inUse(b.launcher.Forget(ctx, s.cfg.Agents.IdleLimit))
				}})
			default:
				there = append(there, b)
			}
		}
	}
	return there, whole, errors.Join(errs...)
}

// sessionHomes lists the homes of sessions in a sandbox. They can only be seen from inside, so a container that was
// removed because nothing ran in it is made for that; what is not as it should be is left for another time.
func (b *sandbox) sessionHomes(ctx context.Context) ([]docker.SessionHome, error) {
	status, err := b.launcher.Status(ctx)
	switch {
	case err != nil || status.ImageIs != docker.StateThere:
		return nil, nil
	case status.Is == docker.StateRunning:
	case b.setting.Home != config.HomeSession || status.Is == docker.StatePaused:
		return nil, nil
	default:
		if err := b.launcher.Prepare(ctx); err != nil {
			return nil, err
		}
	}
	return b.launcher.SessionHomes(ctx)
}

// containerShelf has the containers of sandboxes, with what they hold besides their images and homes.
func (a *app) containerShelf() useShelf {
	return useShelf{list: a.sandboxes.keptContainers, busy: a.cfg.Agents.IdleLimit, now: time.Now}
}

func (s *sandboxes) keptContainers(ctx context.Context) (all []keptThing, err error) {
	var errs []error
	for _, b := range s.all() {
		if b.launcher == nil {
			continue
		}
		size, used, err := b.launcher.Size(ctx)
		errs = append(errs, err)
		if size == 0 {
			continue
		}
		all = append(all, keptThing{used, size, func(ctx context.Context) error {
			return inUse(b.launcher.Retire(ctx, s.cfg.Agents.IdleLimit))
		}})
	}
	return all, errors.Join(errs...)
}

// Plan says what Trim would take.
func (s useShelf) Plan(ctx context.Context, c heartbeat.Cut) (heartbeat.Trimmed, error) {
	all, err := s.list(ctx)
	_, t := s.cut(all, c)
	return t, err
}

// Trim removes things, the longest unused first.
func (s useShelf) Trim(ctx context.Context, c heartbeat.Cut) (heartbeat.Trimmed, error) {
	all, err := s.list(ctx)
	gone, t := s.cut(all, c)
	errs := []error{err}
	for _, thing := range gone {
		err := thing.forget(ctx)
		if err == nil {
			continue
		}
		t.Items, t.Bytes, t.LeftItems, t.LeftBytes = t.Items-1, t.Bytes-thing.bytes, t.LeftItems+1, t.LeftBytes+thing.bytes
		if !errors.Is(err, errInUse) {
			errs = append(errs, fmt.Errorf("forget what was not used for long: %w", err))
		}
	}
	return t, errors.Join(errs...)
}

// cut parts what goes from what stays.
func (s useShelf) cut(all []keptThing, c heartbeat.Cut) (gone []keptThing, t heartbeat.Trimmed) {
	slices.SortFunc(all, func(a, b keptThing) int { return a.used.Compare(b.used) })
	t.LeftItems = int64(len(all))
	for i, thing := range all {
		t.LeftBytes += thing.bytes
		if i == 0 {
			t.Oldest = thing.used
		}
	}
	inUse := s.now().Add(-s.busy)
	for i, thing := range all {
		old := !c.Before.IsZero() && thing.used.Before(c.Before)
		if thing.used.After(inUse) || !old && (c.Bytes == 0 || t.LeftBytes <= c.Bytes) {
			return all[:i], t
		}
		t.Items, t.Bytes = t.Items+1, t.Bytes+thing.bytes
		t.LeftItems, t.LeftBytes = t.LeftItems-1, t.LeftBytes-thing.bytes
	}
	return all, t
}
