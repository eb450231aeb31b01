package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// keptBridges is how many bridges are kept for the next errand beyond the spares.
const keptBridges = 1

// undoWait is how long it may take to end what a broken start may have started.
const undoWait = 30 * time.Second

// away is a Place as a site: everything is done over bridges. Safe for concurrent use.
type away struct {
	place Place
	proto Protocol
	want  int // spare bridges, each with a supervisor that is ready

	mu     sync.Mutex
	idle   []*link
	filled bool // a refill is on its way
	closed bool
	life   context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup
}

func newAway(o Options) *away {
	a := &away{place: o.Place, proto: o.Protocol, want: min(o.Spares, maxSpares)}
	a.life, a.end = context.WithCancel(context.Background())
	return a
}

// take gives a bridge: one that is idle, which may be dead, or a new one.
func (a *away) take(ctx context.Context, effort Effort) (l *link, idle bool, err error) {
	a.mu.Lock()
	if n := len(a.idle); n > 0 {
		l = a.idle[n-1]
		a.idle = a.idle[:n-1]
	}
	a.mu.Unlock()
	if l != nil {
		return l, true, nil
	}
	l, err = a.dial(ctx, effort)
	return l, false, err
}

func (a *away) dial(ctx context.Context, effort Effort) (*link, error) {
	conn, err := a.place.Dial(ctx, effort)
	if err != nil {
		return nil, err
	}
	return newLink(conn), nil
}

// give takes back a bridge that did an errand.
func (a *away) give(l *link) {
	a.mu.Lock()
	keep := !a.closed && len(a.idle) < a.want+keptBridges
	if keep {
		a.idle = append(a.idle, l)
	}
	a.mu.Unlock()
	if !keep {
		l.close()
	}
}

// refill sees to it that a spare is there for the next start, in the background.
func (a *away) refill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.filled || len(a.idle) >= a.want {
		return
	}
	a.filled = true
	a.wg.Go(func() {
		select {
		case <-time.After(refillDelay):
		case <-a.life.Done():
		}
		for a.short() {
			ctx, cancel := context.WithTimeout(a.life, errandWait)
			l, err := a.dial(ctx, AsIs)
			if err == nil {
				_, err = a.ask(ctx, l, errand{Op: errandWarm})
			}
			cancel()
			if err != nil { // a spare that cannot be had is missed at a start only
				break
			}
			a.give(l)
		}
		a.mu.Lock()
		a.filled = false
		a.mu.Unlock()
	})
}

func (a *away) short() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.closed && len(a.idle) < a.want
}

// do has an errand done. An idle bridge that turns out to be dead is no failure: every errand may be done twice.
func (a *away) do(ctx context.Context, effort Effort, e errand) (outcome, error) {
	for {
		l, idle, err := a.take(ctx, effort)
		if err != nil {
			return outcome{}, err
		}
		o, err := a.ask(ctx, l, e)
		if err == nil {
			a.give(l)
			return o, o.failure(e)
		}
		if !idle || ctx.Err() != nil {
			return o, err
		}
	}
}

// ask does an errand over a bridge. Any error closes it.
func (a *away) ask(ctx context.Context, l *link, e errand) (o outcome, err error) {
	e.Protocol = a.proto
	stop := context.AfterFunc(ctx, func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			l.close()
			err = fmt.Errorf("%s: %w", e.Op, err)
		}
	}()
	if err = l.w.json(kindErrand, e); err != nil {
		return o, err
	}
	k, payload, err := l.r.next()
	if err != nil {
		return o, err
	}
	if k != kindOutcome {
		return o, fmt.Errorf("a bridge answered with %q", string(k))
	}
	return o, json.Unmarshal(payload, &o)
}

// connect sends an errand that makes a bridge a connection to a run. broken says that the bridge was idle and
// may have been dead before.
func (a *away) connect(ctx context.Context, effort Effort, e errand) (l *link, w welcome, broken bool, err error) {
	l, idle, err := a.take(ctx, effort)
	if err != nil {
		return nil, w, false, err
	}
	e.Protocol = a.proto
	w, err = l.greet(ctx, kindErrand, e)
	return l, w, idle && errors.Is(err, ErrGone), err
}

func (a *away) start(ctx context.Context, h hello) (*link, welcome, error) {
	if err := checkID(h.Spec.ID); err != nil {
		return nil, welcome{}, err
	}
	e := errand{Op: errandStart, Hello: &h}
	l, w, broken, err := a.connect(ctx, Make, e)
	before := false
	for broken {
		before = true
		l, w, broken, err = a.connect(ctx, Make, e)
	}
	if before && errors.Is(err, fs.ErrExist) { // the bridge that broke had done it
		return a.join(ctx, AsIs, h.Spec.ID, hello{Protocol: h.Protocol, Role: roleOwn, Window: h.Window})
	}
	if err != nil && (errors.Is(err, ErrGone) || ctx.Err() != nil) {
		a.undo(h.Spec.ID)
	}
	if err == nil {
		a.refill()
	}
	return l, w, err
}

// undo ends what a start may have started of which nothing was heard any more, in the background. What it
// cannot reach ends when it finds itself orphaned.
func (a *away) undo(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.wg.Go(func() {
		ctx, cancel := context.WithTimeout(a.life, undoWait)
		defer cancel()
		if a.kill(ctx, id) == nil {
			_ = a.collect(ctx, id)
		}
	})
}

func (a *away) join(ctx context.Context, effort Effort, id string, h hello) (*link, welcome, error) {
	e := errand{Op: errandJoin, Run: id, Hello: &h}
	l, w, broken, err := a.connect(ctx, effort, e)
	for broken {
		l, w, broken, err = a.connect(ctx, effort, e)
	}
	return l, w, err
}

// list finds nothing in a place that is not there.
func (a *away) list(ctx context.Context) ([]Info, error) {
	o, err := a.do(ctx, Revive, errand{Op: errandList})
	return o.Runs, unlessNoPlace(err)
}

func (a *away) kill(ctx context.Context, id string) error {
	_, err := a.do(ctx, Revive, errand{Op: errandKill, Run: id})
	return unlessNoPlace(err)
}

func (a *away) endLeft(ctx context.Context, id string, grace time.Duration) error {
	_, err := a.do(ctx, Revive, errand{Op: errandEnd, Run: id, Grace: grace})
	return unlessNoPlace(err)
}

func (a *away) collect(ctx context.Context, id string) error {
	_, err := a.do(ctx, Revive, errand{Op: errandCollect, Run: id})
	return unlessNoPlace(err)
}

func (a *away) prune(ctx context.Context, age time.Duration) (int, error) {
	o, err := a.do(ctx, AsIs, errand{Op: errandPrune, Age: age})
	return o.Count, unlessNoPlace(err)
}

func (a *away) lookPath(ctx context.Context, name string) (string, error) {
	o, err := a.do(ctx, Make, errand{Op: errandLook, Name: name})
	return o.Path, err
}

func (a *away) since(ctx context.Context, now time.Time) (time.Time, error) {
	o, err := a.do(ctx, Revive, errand{Op: errandSince, Now: now})
	return o.Since, err
}

// unlessNoPlace takes the want of a place for what it means to who wants something ended.
func unlessNoPlace(err error) error {
	if errors.Is(err, ErrNoPlace) {
		return nil
	}
	return err
}

func (a *away) tidy() {}

// close ends the idle bridges. Idempotent.
func (a *away) close() {
	a.mu.Lock()
	a.closed = true
	idle := a.idle
	a.idle = nil
	a.mu.Unlock()
	a.end()
	for _, l := range idle {
		l.close()
	}
	a.wg.Wait()
}
