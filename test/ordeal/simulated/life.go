package simulated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"ductor/internal/app"
	"ductor/test/ordeal/scenario"
)

// errDead is what a ductor gets for everything that it tries after its death.
var errDead = errors.New("ductor is dead")

// atStep is any step that has an effect outside of ductor.
const atStep scenario.Point = "step"

// life is one ductor, from its start to its end or death. Each step that has an effect outside is counted, so that ductor can
// end at any of them. From its death on nothing that it does has an effect.
type life struct {
	world    *World
	number   int
	launcher *launcher
	alive    context.Context // done at the death
	end      context.CancelFunc
	stopping chan struct{} // closed when it is to end, or died

	app    *app.App
	cancel context.CancelFunc
	ran    chan struct{} // closed when Run has returned
	err    error         // of Run

	mu     sync.Mutex
	phase  phase
	counts map[scenario.Point]int
	plan   scenario.Stop // how it is to end, at the N-th moment of its kind
}

// phase is how far the end of a life has come.
type phase int

const (
	living phase = iota
	asked        // to end in order
	dead
)

// step counts a moment; it is an error if ductor is dead.
func (l *life) step(at scenario.Point, what string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == dead {
		return errDead
	}
	l.counts[at]++
	if l.plan.Point == at && l.plan.N == l.counts[at] && l.phase == living {
		l.stop(fmt.Sprintf("at %s %d: %s", at, l.plan.N, what))
		if l.phase == dead {
			return errDead
		}
	}
	return nil
}

// effect is step for what has an effect outside.
func (l *life) effect(what string) error { return l.step(atStep, what) }

func (l *life) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == dead
}

func (l *life) ending() scenario.Stop {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.plan
}

// End ends ductor as s says: now, or at a moment to come. It does nothing while none runs.
func (w *World) End(s scenario.Stop) {
	l := w.current()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != living {
		return
	}
	if s.Point == scenario.AtWrite || s.Point == scenario.AtFlush { // there is no simulated disk
		s.Point = atStep
	}
	s.N += l.counts[s.Point]
	l.plan = s
	if s.Point == "" {
		l.stop("now")
	}
}

// stop ends the life as planned. It is called with mu held.
func (l *life) stop(when string) {
	l.world.log.note("stop", "life %d: %s %s", l.number, l.plan.How, when)
	close(l.stopping)
	if l.plan.How != scenario.Crash && l.plan.How != scenario.Power {
		l.phase = asked
		return
	}
	l.phase = dead
	l.world.disk.freeze()
	l.end()
	l.launcher.abandonAll()
}

// open builds and runs a ductor.
func (w *World) open() (*life, error) {
	w.lives++
	l := &life{
		world: w, number: w.lives, ran: make(chan struct{}), stopping: make(chan struct{}), counts: map[scenario.Point]int{},
	}
	l.alive, l.end = context.WithCancel(context.Background())
	l.launcher = newLauncher(l)
	w.log.note("begin", "life %d", l.number)
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	var err error
	l.app, err = app.Build(ctx, w.cfg, app.Options{
		Log:   slog.New(slog.NewTextHandler(ductorLog{l}, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime})),
		Scrub: app.NewScrubber(w.cfg), Launcher: l.launcher, Transport: l, Started: func() error { return nil },
	})
	if err != nil {
		l.cancel()
		return nil, fmt.Errorf("build life %d: %w", l.number, err)
	}
	go func() {
		defer close(l.ran)
		l.err = l.app.Run(ctx)
	}()
	return l, nil
}

// leave ends ductor in order, and agents go on.
func (l *life) leave() {
	l.cancel()
	<-l.ran
	l.app.Leave()
	l.world.log.note("left", "life %d", l.number)
}

// bury waits until nothing of a dead ductor runs, and takes back what it wrote after its death.
func (l *life) bury() error {
	if l.err != nil && !l.dead() && !errors.Is(l.err, context.Canceled) { // it was stopped while it started
		return fmt.Errorf("life %d failed: %w", l.number, l.err)
	}
	if !l.dead() {
		return nil
	}
	l.cancel()
	<-l.ran
	l.app.Leave()
	return l.world.disk.thaw()
}

// RoundTrip makes a call to Telegram, unless ductor is dead.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := l.effect("call " + r.URL.Path); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.alive, cancel)()
	answer, err := l.world.wire.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := l.step(scenario.AtCall, "answer "+r.URL.Path); err != nil {
		return nil, err
	}
	return answer, nil
}

// ductorLog writes ductor's log into the world's.
type ductorLog struct{ *life }

func (d ductorLog) Write(p []byte) (int, error) {
	if !d.dead() {
		d.world.log.said("ductor", "%d: %s", d.number, p)
	}
	return len(p), nil
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
