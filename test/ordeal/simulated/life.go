package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"ductor/bot/tgapi"
	"ductor/internal/app"
)

// errDead is what a ductor gets for everything that it tries after its death.
var errDead = errors.New("ductor is dead")

// life is one ductor, from its start to its end or death. Each step that has an effect outside is counted, so that ductor can
// die at any of them. From its death on nothing that it does has an effect.
type life struct {
	world    *World
	number   int
	launcher *launcher
	alive    context.Context // done at the death
	end      context.CancelFunc

	app    *app.App
	cancel context.CancelFunc
	ran    chan struct{} // closed when Run has returned
	err    error         // of Run

	mu      sync.Mutex
	steps   int
	dieAt   int // the step at which ductor dies; 0 for none
	wasDead bool
}

// step counts one more step; it is an error if ductor is dead.
func (l *life) step(what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wasDead {
		return errDead
	}
	l.steps++
	if l.steps == l.dieAt {
		l.die(fmt.Sprintf("at step %d: %s", l.steps, what))
		return errDead
	}
	return nil
}

func (l *life) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wasDead
}

// kill has ductor die now.
func (l *life) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wasDead {
		l.die("now")
	}
}

// die is called with mu held.
func (l *life) die(how string) {
	l.wasDead = true
	l.world.log.note("crash", "life %d, %s", l.number, how)
	l.world.disk.freeze()
	l.end()
	l.launcher.abandonAll()
}

// Open builds and runs a ductor.
func (w *World) open() (*life, error) {
	w.lives++
	l := &life{world: w, number: w.lives, ran: make(chan struct{})}
	l.alive, l.end = context.WithCancel(context.Background())
	l.launcher = newLauncher(l)
	w.log.note("begin", "life %d", l.number)
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	var err error
	l.app, err = app.Build(ctx, w.cfg, app.Options{
		Log: w.logger(l), Scrub: tgapi.NewScrubber(w.Telegram.Token()), Launcher: l.launcher,
		Transport: l, Started: func() error { return nil },
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
	l.cancel()
	<-l.ran
	l.app.Leave()
	return l.world.disk.thaw()
}

// RoundTrip makes a call to Telegram, unless ductor is dead.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := l.step("call " + r.URL.Path); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.alive, cancel)()
	answer, err := l.world.wire.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := l.step("answer " + r.URL.Path); err != nil {
		return nil, err
	}
	return answer, nil
}

// logger writes ductor's log into the world's.
func (w *World) logger(l *life) *slog.Logger {
	return slog.New(slog.NewTextHandler(ductorLog{l}, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}))
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

type ductorLog struct{ *life }

func (d ductorLog) Write(p []byte) (int, error) {
	if !d.dead() {
		d.world.log.said("ductor", "%d: %s", d.number, p)
	}
	return len(p), nil
}

var _ io.Writer = ductorLog{}
