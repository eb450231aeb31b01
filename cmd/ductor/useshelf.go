package main

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/docker"
	"ductor/heartbeat"
	"ductor/internal/config"
)

// inUse makes an error of what did not go.
func inUse(gone bool, err error) error {
	if err == nil && !gone {
		err = heartbeat.ErrInUse
	}
	return err
}

// homeShelf has the homes that sessions have of their own, on this machine and in sandboxes, and the homes of
// sandboxes that are configured no longer.
func (a *app) homeShelf() heartbeat.Things {
	return heartbeat.Things{List: a.keptHomes, InUse: since(max(a.cfg.Agents.TurnTimeout, a.cfg.Agents.IdleLimit))}
}

// since gives the time of d ago.
func since(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(-d) } }

// keptHomes are all of them, those that could be listed where others could not.
func (a *app) keptHomes(ctx context.Context) (all []heartbeat.Thing, err error) {
	var errs []error
	if a.homes != nil {
		infos, err := a.homes.List(ctx)
		errs = append(errs, err)
		for _, i := range infos {
			all = append(all, heartbeat.Thing{Used: i.Used, Bytes: i.Bytes, Forget: func(ctx context.Context) error { return a.homes.Forget(ctx, i.Name) }})
		}
	}
	there, whole, err := a.sandboxes.sortHomes(ctx)
	errs = append(errs, err)
	for _, b := range there {
		homes, err := b.sessionHomes(ctx)
		errs = append(errs, err)
		for _, i := range homes {
			all = append(all, heartbeat.Thing{Used: i.Used, Bytes: i.Bytes, Forget: func(ctx context.Context) error { return b.launcher.ForgetHome(ctx, i.Name) }})
		}
	}
	return append(all, whole...), errors.Join(errs...)
}

// sortHomes finds the sandboxes that have a home in their engines, and the homes that go as a whole: those of one
// conversation, and of sandboxes that are configured no longer.
func (s *sandboxes) sortHomes(ctx context.Context) (there []*sandbox, whole []heartbeat.Thing, err error) {
	var errs []error
	for _, e := range s.engines {
		homes, err := e.Homes(ctx, s.owner(), s.path(dockerDir))
		errs = append(errs, err)
		for _, home := range homes {
			b := s.find(cli.Sandbox(home.Name))
			switch {
			case b == nil:
				whole = append(whole, heartbeat.Thing{Used: home.Used, Forget: func(ctx context.Context) error { return e.Forget(ctx, s.owner(), home.Name) }})
			case b.launcher == nil || b.engine != e:
			case cli.Sandbox(home.Name).Alone() != "":
				whole = append(whole, heartbeat.Thing{Used: home.Used, Forget: func(ctx context.Context) error {
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
func (a *app) containerShelf() heartbeat.Things {
	return heartbeat.Things{List: a.sandboxes.keptContainers, InUse: since(a.cfg.Agents.IdleLimit)}
}

func (s *sandboxes) keptContainers(ctx context.Context) (all []heartbeat.Thing, err error) {
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
		all = append(all, heartbeat.Thing{Used: used, Bytes: size, Forget: func(ctx context.Context) error {
			return inUse(b.launcher.Retire(ctx, s.cfg.Agents.IdleLimit))
		}})
	}
	return all, errors.Join(errs...)
}
