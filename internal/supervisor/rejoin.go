package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

const (
	rejoinPatience = 10 * time.Second
	rejoinPause    = 200 * time.Millisecond
	rejoinMost     = 20 // times without a byte in between
)

// rejoin connects a run in a Place anew, where the output broke off. It gives up after a while, and at once when
// the place is no more.
func (r *Run) rejoin() error {
	h := r.again
	from, granted := r.out.inbox.reach()
	h.Offset, h.Window = from, granted-from
	if from != r.rejoinedAt {
		r.rejoins, r.rejoinedAt = 0, from
	}
	if r.rejoins++; r.rejoins > rejoinMost {
		return errors.New("the connection breaks again and again")
	}
	for until := time.Now().Add(rejoinPatience); ; {
		ctx, cancel := context.WithTimeout(r.life, proxyWait)
		l, w, err := r.root.env.join(ctx, AsIs, r.ID(), h)
		cancel()
		if err == nil {
			return r.relink(l, w)
		}
		if hopeless(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-r.life.Done():
			return ErrDetached
		case <-time.After(rejoinPause):
		}
	}
}

// relink makes l the connection. Its supervisor is told again how much output it may send: what it was told while
// there was none is lost.
func (r *Run) relink(l *link, w welcome) error {
	r.mu.Lock()
	detached := r.detached
	if !detached {
		if r.gathers {
			l.pace.gather()
		}
		r.link, r.inputEnd, r.stderr = l, w.Info.InputEnd, nil // the last of standard error is told anew
		close(r.relinked)
		r.relinked = make(chan struct{})
	}
	r.mu.Unlock()
	if detached {
		l.close()
		return ErrDetached
	}
	_, granted := r.out.inbox.reach()
	_ = l.w.marked(kindWindow, granted, nil) // receive sees a connection that broke
	return nil
}

// hopeless says whether an error of a join will not pass with time.
func hopeless(err error) bool {
	var version *VersionError
	var offset *OffsetError
	return errors.Is(err, ErrNoPlace) || errors.Is(err, fs.ErrNotExist) || errors.As(err, &version) || errors.As(err, &offset)
}
