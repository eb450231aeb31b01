package environment

import (
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/docker"
	"ductor/heartbeat"
)

// removalError returns err. If err is nil and nothing was removed, it returns heartbeat.ErrInUse.
func removalError(removed bool, err error) error {
	if err == nil && !removed {
		err = heartbeat.ErrInUse
	}
	return err
}

// HomesDataset returns the homes that retention may remove: the homes of sessions, on this machine and in sandboxes,
// and the homes of sandboxes that are no longer configured.
func (e *Environments) HomesDataset() heartbeat.Items {
	return heartbeat.Items{List: e.keptHomes,
		InUse: since(max(e.Sandboxes.cfg.Agents.TurnTimeout, e.Sandboxes.cfg.Agents.IdleLimit))}
}

// since returns a function whose result is the current time minus d.
func since(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(-d) } }

// keptHomes lists the homes. If it cannot list some, it returns all others and an error.
func (e *Environments) keptHomes(ctx context.Context) (all []heartbeat.Item, err error) {
	var errs []error
	if e.Homes != nil {
		infos, err := e.Homes.List(ctx)
		errs = append(errs, err)
		for _, i := range infos {
			all = append(all, heartbeat.Item{Used: i.Used, Bytes: i.Bytes, Remove: func(ctx context.Context) error {
				return e.Homes.Forget(ctx, i.Name)
			}})
		}
	}
	withSessions, whole, err := e.Sandboxes.sortHomes(ctx)
	errs = append(errs, err)
	for _, b := range withSessions {
		homes, err := b.sessionHomes(ctx)
		errs = append(errs, err)
		for _, i := range homes {
			all = append(all, heartbeat.Item{Used: i.Used, Bytes: i.Bytes, Remove: func(ctx context.Context) error {
				return b.Launcher.ForgetHome(ctx, i.Name)
			}})
		}
	}
	return append(all, whole...), errors.Join(errs...)
}

// sortHomes divides the home directories in all engines into two groups. ductor removes them in different ways:
//   - In a sandbox of withSessions, each session has its own home, which ductor can remove alone.
//   - A home in whole belongs to a single conversation, or to a sandbox that is no longer configured. ductor can only
//     remove it completely.
func (s *Sandboxes) sortHomes(ctx context.Context) (withSessions []*Sandbox, whole []heartbeat.Item, err error) {
	var errs []error
	for _, e := range s.engines {
		homes, err := e.Homes(ctx, Owner(s.cfg), s.path(dockerDir))
		errs = append(errs, err)
		for _, home := range homes {
			b := s.Find(cli.Sandbox(home.Name))
			switch {
			case b == nil:
				whole = append(whole, heartbeat.Item{Used: home.Used, Remove: func(ctx context.Context) error {
					return e.Forget(ctx, Owner(s.cfg), home.Name)
				}})
			case b.Launcher == nil || b.Engine != e:
			case cli.Sandbox(home.Name).Alone() != "":
				whole = append(whole, heartbeat.Item{Used: home.Used, Remove: func(ctx context.Context) error {
					return removalError(b.Launcher.Forget(ctx, s.cfg.Agents.IdleLimit))
				}})
			default:
				withSessions = append(withSessions, b)
			}
		}
	}
	return withSessions, whole, errors.Join(errs...)
}

// sessionHomes returns the homes of sessions in a sandbox. Only a running container can list them, so sessionHomes may
// create the container again. It skips a sandbox that is paused or has no image.
func (b *Sandbox) sessionHomes(ctx context.Context) ([]docker.SessionHome, error) {
	status, err := b.Launcher.Status(ctx)
	switch {
	case err != nil || status.ImageIs != docker.StateThere:
		return nil, nil
	case status.Is == docker.StateRunning:
	case b.Setting.Home != docker.HomeSession || status.Is == docker.StatePaused:
		return nil, nil
	default:
		if err := b.Launcher.Prepare(ctx); err != nil {
			return nil, err
		}
	}
	return b.Launcher.SessionHomes(ctx)
}

// ContainersDataset returns the containers of sandboxes, with the size of their data. The size includes neither images
// nor homes.
func (e *Environments) ContainersDataset() heartbeat.Items {
	return heartbeat.Items{List: e.Sandboxes.keptContainers, InUse: since(e.Sandboxes.cfg.Agents.IdleLimit)}
}

func (s *Sandboxes) keptContainers(ctx context.Context) (all []heartbeat.Item, err error) {
	var errs []error
	for _, b := range s.All() {
		if b.Launcher == nil {
			continue
		}
		size, used, err := b.Launcher.Size(ctx)
		errs = append(errs, err)
		if size == 0 {
			continue
		}
		all = append(all, heartbeat.Item{Used: used, Bytes: size, Remove: func(ctx context.Context) error {
			return removalError(b.Launcher.Retire(ctx, s.cfg.Agents.IdleLimit))
		}})
	}
	return all, errors.Join(errs...)
}
