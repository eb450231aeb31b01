package docker

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"
)

// State describes an image or a container in words for users.
type State string

const (
	StateThere   State = "there"         // the image exists
	StateToFetch State = "to be fetched" // the image is missing, and ductor will fetch it when needed
	StateToBuild State = "to be built"   // the image is missing, and ductor will build it when needed
	// StateMissing means that the image is missing, and that the options forbid ductor to fetch the image. Status then
	// also returns an error.
	StateMissing State = "missing"
	StateNone    State = "not made yet" // ductor will create the container when needed
	StateRunning State = "running"
	StatePaused  State = "paused"  // ductor will unpause the container when needed
	StateStopped State = "stopped" // ductor will start the container when needed
	StateNoRoom  State = "ended for want of memory"
)

// Status describes a sandbox. Fields that are unknown are empty.
type Status struct {
	Host     string // address of the engine
	Version  string // version of the engine
	OS, Arch string // operating system and architecture of the engine's machine
	Image    string // name of the configured image
	ImageIs  State
	Failed   string // why ductor could not make the missing image; may be empty
	Is       State  // state of the container
}

// Status asks the engine about itself, the image and the container. It creates and starts nothing. If a turn would fail
// now, Status returns an *Error with the reason, and the fields that it knows.
func (l *Launcher) Status(ctx context.Context) (Status, error) {
	e, o := l.remote.engine, l.opts
	s := Status{Host: e.host}
	if err := s.inspectEngine(ctx, e); err != nil {
		return s, err
	}
	from := &l.remote.sources
	if _, err := from.runner(o, s.Arch); err != nil {
		return s, err
	}
	if err := s.inspectImage(ctx, e, o, from); err != nil {
		return s, err
	}
	if s.ImageIs != StateThere {
		n, _ := l.notes.read() // an unreadable note counts as none
		s.Failed = n.Failed
	}
	c, there, err := e.inspect(ctx, l.remote.name)
	if err != nil {
		return s, err
	}
	s.Is = stateOf(c, there)
	return s, nil
}

func (s *Status) inspectEngine(ctx context.Context, e *Engine) error {
	ctx, cancel := e.requestContext(ctx)
	defer cancel()
	v, err := e.api.ServerVersion(ctx)
	if err != nil {
		return e.describe("say what it is", err)
	}
	s.Version, s.OS, s.Arch = v.Version, v.Os, v.Arch
	if s.OS != "linux" {
		return &Error{Reason: fmt.Sprintf("Docker at %s runs containers for %s, and agents need linux", e.host, s.OS),
			Fix: "switch it to Linux containers, or name another engine"}
	}
	return nil
}

func (s *Status) inspectImage(ctx context.Context, e *Engine, o Options, from *sources) (err error) {
	if s.Image, err = from.baseName(o); err != nil {
		return err
	}
	info, there, err := e.image(ctx, s.Image)
	switch {
	case err != nil:
		return err
	case there:
		s.ImageIs = StateThere
		_, err := from.runner(o, info.Architecture)
		return err
	case o.Build != nil:
		s.ImageIs = StateToBuild
	case o.Pull || o.Source != nil:
		s.ImageIs = StateToFetch
	default:
		s.ImageIs = StateMissing
		return e.noImage(s.Image)
	}
	return nil
}

func stateOf(c container.InspectResponse, there bool) State {
	switch {
	case !there:
		return StateNone
	case c.State.Paused:
		return StatePaused
	case c.State.Running:
		return StateRunning
	case c.State.OOMKilled:
		return StateNoRoom
	}
	return StateStopped
}
