package simulated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"syscall"
	"time"

	"ductor/internal/app"
	"ductor/internal/sim/disk"
	"ductor/orchestrator"
	"ductor/test/ordeal/scenario"
)

// errDead is the error of each call that a ductor process makes after the process has died.
var errDead = errors.New("ductor is dead")

// atStep is a Point for all steps of ductor that have an effect outside of ductor. It does not occur in scenarios.
const atStep scenario.Point = "step"

// life is one ductor process, from its start until it ends or dies. It counts the steps that have an effect outside of
// ductor, so that a test can make ductor die at any of these steps. After the death, nothing that the process does has
// an effect.
type life struct {
	world    *World
	number   int
	launcher *launcher
	alive    context.Context // cancelled when the process dies
	end      context.CancelFunc
	stopping chan struct{} // closed when the process must end, and when it dies

	app    *app.App
	cancel context.CancelFunc
	ran    chan struct{} // closed when Run has returned
	err    error         // error that Run has returned

	mu     sync.Mutex
	phase  phase
	counts map[scenario.Point]int
	plan   plan // how and when the process will end
}

type phase int

const (
	living phase = iota
	asked        // the process has been asked to end
	dead
)

// step counts a step of ductor. If l.plan names this step, step ends ductor as planned. If ductor is dead, step returns
// errDead.
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

// effect counts a step that has an effect outside of ductor.
func (l *life) effect(what string) error { return l.step(atStep, what) }

func (l *life) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == dead
}

func (l *life) ending() scenario.Stop {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.plan.Stop
}

// End ends ductor now or, if s names a Point, later. It does nothing if ductor is not running.
func (w *World) End(s scenario.Stop) {
	l := w.current()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != living {
		return
	}
	s.N += l.counts[s.Point]
	l.plan = plan{s}
	if s.Point == "" {
		l.stop("now")
	}
}

// stop ends the process as its plan requires. The caller holds mu.
func (l *life) stop(when string) {
	l.world.log.note("stop", "life %d: %s %s", l.number, l.plan.How, when)
	l.phase = asked
	if how := l.plan.crash(); how != disk.NoCrash {
		l.mu.Unlock()
		l.world.disk.medium.Crash(how) // from now on, all calls to the disk fail
		l.mu.Lock()
		return
	}
	close(l.stopping)
}

// die kills the simulated process in the middle of its work. The simulated disk calls die when the disk has crashed.
func (l *life) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = dead
	l.world.disk.freeze()
	l.end()
	if l.plan.How == scenario.Power {
		l.world.machine.powerOff()
		l.world.disk.reboot()
	}
	l.launcher.abandonAll()
	close(l.stopping)
}

// diskStep counts a call to the disk. If the process must die in this call, diskStep returns the kind of the crash.
func (l *life) diskStep(op disk.Op) disk.Crash {
	at := map[disk.Op]scenario.Point{disk.Write: scenario.AtWrite, disk.Sync: scenario.AtFlush}[op]
	if l == nil || at == "" {
		return disk.NoCrash
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts[at]++; l.phase != living || l.plan.Point != at || l.plan.N != l.counts[at] {
		return disk.NoCrash
	}
	l.phase = asked
	l.world.log.note("stop", "life %d: %s at %s %d", l.number, l.plan.How, at, l.plan.N)
	how := l.plan.crash()
	if how == disk.NoCrash {
		close(l.stopping)
	}
	return how
}

type plan struct{ scenario.Stop }

// crash returns how the disk crashes when ductor ends as planned, or disk.NoCrash.
func (p plan) crash() disk.Crash {
	switch p.How {
	case scenario.Crash:
		return disk.Kill
	case scenario.Power:
		return disk.Power
	}
	return disk.NoCrash
}

// failed handles an error that ended ductor. It makes World start ductor again after restartPause, like systemd.
func (l *life) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != living {
		return
	}
	l.world.log.note("failed", "life %d: %v", l.number, err)
	l.phase, l.plan = asked, plan{scenario.Stop{How: scenario.Restart, Down: restartPause}}
	close(l.stopping)
}

// restartPause is how long systemd waits before it restarts a failed ductor.
const restartPause = 5 * time.Second

// open builds a ductor, makes it the current one, and starts it.
func (w *World) open() error {
	w.lives++
	l := &life{
		world: w, number: w.lives, ran: make(chan struct{}), stopping: make(chan struct{}),
		counts: map[scenario.Point]int{},
	}
	l.alive, l.end = context.WithCancel(context.Background())
	l.launcher = newLauncher(l)
	w.log.note("begin", "life %d", l.number)
	w.setLife(l)
	if err := w.disk.setTimes(); err != nil {
		return err
	}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	var err error
	l.app, err = app.Build(ctx, w.cfg, app.Options{
		Log: slog.New(slog.NewTextHandler(ductorLog{l},
			&slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime})),
		Scrub: app.NewScrubber(w.cfg), Launcher: l.launcher,
		Network:       app.Network{Telegram: l, Webhooks: l.launcher.hooks},
		Store:         w.disk.options(),
		ReleaseMemory: func() error { return nil }, // the next scenario uses the memory again
	})
	if err != nil {
		l.cancel()
		return fmt.Errorf("build life %d: %w", l.number, err)
	}
	go func() {
		defer close(l.ran)
		if l.err = l.app.Run(ctx); l.err != nil && ctx.Err() == nil {
			l.failed(l.err)
		}
	}()
	return nil
}

// leave ends ductor normally. The agents continue to run.
func (l *life) leave() {
	l.cancel()
	<-l.ran
	l.app.Leave()
	l.world.log.note("left", "life %d", l.number)
}

// awaitEnd waits until the process runs no more code. A process that died in the simulation may still run for a while
// and write files. So awaitEnd then restores the files as they were when the process died.
func (l *life) awaitEnd() error {
	if !l.dead() {
		if err := l.world.disk.release(); err != nil {
			return err
		}
		full := errors.Is(l.err, orchestrator.ErrDiskFull) // with a full disk, ductor must wait and not end
		if l.err != nil && !errors.Is(l.err, context.Canceled) && (full || !isOfDisk(l.err)) {
			return fmt.Errorf("life %d failed: %w", l.number, l.err)
		}
		return nil
	}
	l.cancel()
	<-l.ran
	l.app.Leave()
	return l.world.disk.thaw()
}

// RoundTrip makes a call to Telegram. If ductor is dead, RoundTrip only returns an error.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := l.effect("call " + r.URL.Path); err != nil {
		return nil, err
	}
	if l.world.away() {
		return nil, syscall.ECONNREFUSED
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

// ductorLog adds the lines of ductor's own log to World.log.
type ductorLog struct{ *life }

func (d ductorLog) Write(p []byte) (int, error) {
	if !d.dead() {
		d.world.log.noteQuietly("ductor", "%d: %s", d.number, p)
	}
	return len(p), nil
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
