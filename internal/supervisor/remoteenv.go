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

// keptProxies is how many proxies are kept for the next request beyond the spares.
const keptProxies = 1

// undoWait is how long it may take to end what a broken start may have started.
const undoWait = 30 * time.Second

// remoteEnv is a runEnv in a Place: everything is done over proxies. Safe for concurrent use.
type remoteEnv struct {
	place Place
	proto Protocol
	want  int // spare proxies, each with a supervisor that is ready

	mu     sync.Mutex
	idle   []*link
	filled bool // a refill is on its way
	closed bool
	life   context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup
}

func newRemoteEnv(o Options) *remoteEnv {
	r := &remoteEnv{place: o.Place, proto: o.Protocol, want: min(o.Spares, maxSpares)}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// take gives a proxy: one that is idle, which may be dead, or a new one.
func (r *remoteEnv) take(ctx context.Context, effort Effort) (l *link, idle bool, err error) {
	r.mu.Lock()
	if n := len(r.idle); n > 0 {
		l = r.idle[n-1]
		r.idle = r.idle[:n-1]
	}
	r.mu.Unlock()
	if l != nil {
		return l, true, nil
	}
	l, err = r.dial(ctx, effort)
	return l, false, err
}

func (r *remoteEnv) dial(ctx context.Context, effort Effort) (*link, error) {
	conn, err := r.place.Dial(ctx, effort)
	if err != nil {
		return nil, err
	}
	return newLink(conn), nil
}

// give takes back a proxy that answered a request.
func (r *remoteEnv) give(l *link) {
	r.mu.Lock()
	keep := !r.closed && len(r.idle) < r.want+keptProxies
	if keep {
		r.idle = append(r.idle, l)
	}
	r.mu.Unlock()
	if !keep {
		l.close()
	}
}

// refill sees to it that a spare is there for the next start, in the background.
func (r *remoteEnv) refill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.filled || len(r.idle) >= r.want {
		return
	}
	r.filled = true
	r.wg.Go(func() {
		select {
		case <-time.After(refillDelay):
		case <-r.life.Done():
		}
		for r.short() {
			ctx, cancel := context.WithTimeout(r.life, proxyWait)
			l, err := r.dial(ctx, AsIs)
			if err == nil {
				_, err = r.ask(ctx, l, proxyRequest{Op: proxyWarm})
			}
			cancel()
			if err != nil { // a spare that cannot be had is missed at a start only
				break
			}
			r.give(l)
		}
		r.mu.Lock()
		r.filled = false
		r.mu.Unlock()
	})
}

func (r *remoteEnv) short() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.closed && len(r.idle) < r.want
}

// do sends a request and gives the answer. An idle proxy that turns out to be dead is no failure: every request may be done twice.
func (r *remoteEnv) do(ctx context.Context, effort Effort, e proxyRequest) (outcome, error) {
	for {
		l, idle, err := r.take(ctx, effort)
		if err != nil {
			return outcome{}, err
		}
		o, err := r.ask(ctx, l, e)
		if err == nil {
			r.give(l)
			return o, o.failure(e)
		}
		if !idle || ctx.Err() != nil {
			return o, err
		}
	}
}

// ask sends a request over a proxy. Any error closes it.
func (r *remoteEnv) ask(ctx context.Context, l *link, e proxyRequest) (o outcome, err error) {
	e.Protocol = r.proto
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
	if err = l.w.json(kindProxyRequest, e); err != nil {
		return o, err
	}
	k, payload, err := l.r.next()
	if err != nil {
		return o, err
	}
	if k != kindOutcome {
		return o, fmt.Errorf("a proxy answered with %q", string(k))
	}
	return o, json.Unmarshal(payload, &o)
}

// connect sends a request that makes a proxy a connection to a run. broken says that the proxy was idle and
// may have been dead before.
func (r *remoteEnv) connect(ctx context.Context, effort Effort, e proxyRequest) (l *link, w welcome, broken bool, err error) {
	l, idle, err := r.take(ctx, effort)
	if err != nil {
		return nil, w, false, err
	}
	e.Protocol = r.proto
	w, err = l.greet(ctx, kindProxyRequest, e)
	return l, w, idle && errors.Is(err, ErrGone), err
}

func (r *remoteEnv) start(ctx context.Context, h hello) (*link, welcome, error) {
	if err := checkID(h.Spec.ID); err != nil {
		return nil, welcome{}, err
	}
	e := proxyRequest{Op: proxyStart, Hello: &h}
	l, w, broken, err := r.connect(ctx, Make, e)
	before := false
	for broken {
		before = true
		l, w, broken, err = r.connect(ctx, Make, e)
	}
	if before && errors.Is(err, fs.ErrExist) { // the proxy that broke had done it
		return r.join(ctx, AsIs, h.Spec.ID, hello{Protocol: h.Protocol, Role: roleOwn, Window: h.Window})
	}
	if err != nil && (errors.Is(err, ErrGone) || ctx.Err() != nil) {
		r.undo(h.Spec.ID)
	}
	if err == nil {
		r.refill()
	}
	return l, w, err
}

// undo ends what a start may have started of which nothing was heard any more, in the background. What it
// cannot reach ends when it finds itself orphaned.
func (r *remoteEnv) undo(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.life, undoWait)
		defer cancel()
		if r.kill(ctx, id) == nil {
			_ = r.collect(ctx, id)
		}
	})
}

func (r *remoteEnv) join(ctx context.Context, effort Effort, id string, h hello) (*link, welcome, error) {
	e := proxyRequest{Op: proxyJoin, Run: id, Hello: &h}
	l, w, broken, err := r.connect(ctx, effort, e)
	for broken {
		l, w, broken, err = r.connect(ctx, effort, e)
	}
	return l, w, err
}

// list finds nothing in a place that is not there.
func (r *remoteEnv) list(ctx context.Context) ([]Info, error) {
	o, err := r.do(ctx, Revive, proxyRequest{Op: proxyList})
	return o.Runs, unlessNoPlace(err)
}

func (r *remoteEnv) kill(ctx context.Context, id string) error {
	_, err := r.do(ctx, Revive, proxyRequest{Op: proxyKill, Run: id})
	return unlessNoPlace(err)
}

func (r *remoteEnv) endLeft(ctx context.Context, id string, grace time.Duration) error {
	_, err := r.do(ctx, Revive, proxyRequest{Op: proxyEnd, Run: id, Grace: grace})
	return unlessNoPlace(err)
}

func (r *remoteEnv) collect(ctx context.Context, id string) error {
	_, err := r.do(ctx, Revive, proxyRequest{Op: proxyCollect, Run: id})
	return unlessNoPlace(err)
}

func (r *remoteEnv) prune(ctx context.Context, age time.Duration) (int, error) {
	o, err := r.do(ctx, AsIs, proxyRequest{Op: proxyPrune, Age: age})
	return o.Count, unlessNoPlace(err)
}

func (r *remoteEnv) lookPath(ctx context.Context, name string) (string, error) {
	o, err := r.do(ctx, Make, proxyRequest{Op: proxyLook, Name: name})
	return o.Path, err
}

// unlessNoPlace takes the want of a place for what it means to who wants something ended.
func unlessNoPlace(err error) error {
	if errors.Is(err, ErrNoPlace) {
		return nil
	}
	return err
}

func (r *remoteEnv) tidy() {}

// close ends the idle proxies. Idempotent.
func (r *remoteEnv) close() {
	r.mu.Lock()
	r.closed = true
	idle := r.idle
	r.idle = nil
	r.mu.Unlock()
	r.end()
	for _, l := range idle {
		l.close()
	}
	r.wg.Wait()
}
