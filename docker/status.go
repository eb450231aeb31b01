package docker

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"
)

// State is how something of a sandbox is at the moment, for the user to read.
type State string

// The states of an image and of a container.
const (
	StateThere   State = "there"         // an image that can be used
	StateToFetch State = "to be fetched" // an image that is not there, and will be when it is needed
	StateToBuild State = "to be built"   // ditto
	StateMissing State = "missing"       // an image that ductor may not fetch; there is an error too
	StateNone    State = "not made yet"  // a container that is made when it is needed
	StateRunning State = "running"
	StatePaused  State = "paused"  // woken when it is needed
	StateStopped State = "stopped" // started when it is needed
	StateNoRoom  State = "ended for want of memory"
)

// Status is what can be said of a sandbox without making anything. What could not be learned is empty.
type Status struct {
	Host     string // of the engine
	Version  string // of the engine
	OS, Arch string // of the engine's machine
	Image    string // the name of what the sandbox is made of
	ImageIs  State
	Failed   string // why an image that is not there could not be made the last time; empty if that was not tried
	Is       State  // of the container
}

// Status looks at the engine, the image and the container, without making or starting anything. An error is an
// *Error: it says why a turn would be refused now. What was learned until then is given with it.
func (l *Launcher) Status(ctx context.Context) (Status, error) {
	e, o := l.place.engine, l.opts
	s := Status{Host: e.host}
	if err := s.askEngine(ctx, e); err != nil {
		return s, err
	}
	from := &l.place.sources
	if _, err := from.runner(o, s.Arch); err != nil {
		return s, err
	}
	if err := s.askImage(ctx, e, o, from); err != nil {
		return s, err
	}
	if s.ImageIs != StateThere {
		n, _ := l.notes.read() // what cannot be read remembers nothing
		s.Failed = n.Failed
	}
	c, there, err := e.inspect(ctx, l.place.name)
	if err != nil {
		return s, err
	}
	s.Is = stateOf(c, there)
	return s, nil
}

func (s *Status) askEngine(ctx context.Context, e *Engine) error {
	ctx, cancel := e.brief(ctx)
	defer cancel()
	v, err := e.api.ServerVersion(ctx)
	if err != nil {
		return e.failed("say what it is", err)
	}
	s.Version, s.OS, s.Arch = v.Version, v.Os, v.Arch
	if s.OS != "linux" {
		return &Error{Reason: fmt.Sprintf("Docker at %s runs containers for %s, and agents need linux", e.host, s.OS), Fix: "switch it to Linux containers, or name another engine"}
	}
	return nil
}

func (s *Status) askImage(ctx context.Context, e *Engine, o Options, from *sources) (err error) {
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
