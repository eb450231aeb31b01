package supervisor

import (
	"context"
	"ductor/internal/proctree"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// relistenSignal makes a supervisor look whether its socket is still there.
const relistenSignal = unix.SIGHUP

// stopSlack is how long beyond its grace a stop may take before it counts as unanswered.
const stopSlack = proctree.KillPatience + 2*time.Second

func requestContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), requestWait)
}

// Stop ends the agent and every descendant: TERM, grace, KILL, reap, look again. It returns when none is
// left, and at once when none was. When ctx is done the grace is over. Idempotent; it works after the agent
// exited and after the supervisor was killed.
func (r *Run) Stop(ctx context.Context, grace time.Duration) error {
	err := r.stop(ctx, grace)
	if lost(err) {
		err = r.root.env.endLeft(ctx, r.ID(), grace)
	}
	if err != nil {
		return fmt.Errorf("stop run %s: %w", r.ID(), err)
	}
	if r.current() != nil {
		<-r.done // the agent is dead: its exit is on the way, or the connection's end
	}
	return nil
}

func (r *Run) stop(ctx context.Context, grace time.Duration) error {
	asking, cancel := context.WithTimeout(ctx, grace+stopSlack)
	defer cancel()
	_, err := r.ask(asking, request{Op: opStop, Grace: int64(grace)})
	if err == nil || ctx.Err() == nil || lost(err) || errors.Is(err, ErrDetached) {
		return err
	}
	now, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopSlack)
	defer cancel()
	_, err = r.ask(now, request{Op: opStop})
	return err
}

// Detach leaves the run as it is, agent and all, and forgets it. Reads end with ErrDetached. Idempotent.
func (r *Run) Detach() {
	r.mu.Lock()
	r.detached = true
	l := r.link
	r.mu.Unlock()
	if l != nil {
		r.leave()
		l.close()
		<-r.served
	}
	r.root.forget(r)
}

// Collect removes what is left of a run whose agent exited: what it left running, and what is on disk. The
// Run is detached then.
func (r *Run) Collect(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: opCollect})
	if lost(err) {
		err = r.root.env.collect(ctx, r.ID())
	}
	if err != nil {
		return fmt.Errorf("collect run %s: %w", r.ID(), err)
	}
	r.Detach()
	return nil
}

// lost says whether a request failed because there is no connection to a supervisor any more.
func lost(err error) bool {
	var place *LostPlaceError
	return errors.Is(err, ErrGone) || errors.As(err, &place)
}

// Kill ends a run's agent and every descendant, whatever state its supervisor is in and whatever version it
// is: TERM, the run's own grace, KILL. What it printed stays to be collected. A run that was collected has
// ended, so there is no error for one that is not there.
func (r *Root) Kill(ctx context.Context, id string) error {
	if err := r.env.kill(ctx, id); err != nil {
		return fmt.Errorf("kill run %s: %w", id, err)
	}
	return nil
}

func (g *localEnv) kill(ctx context.Context, id string) error {
	rec, err := g.record(id)
	if errors.Is(err, os.ErrNotExist) && checkID(id) == nil { // collected before, or never begun
		return g.endLeft(ctx, id, defaultGrace)
	}
	if err != nil {
		return err
	}
	_, err = g.askOnce(ctx, rec, request{Op: opStop, Grace: int64(rec.Limits.Grace)}, rec.Limits.Grace+stopSlack)
	if err != nil {
		err = g.endLeft(ctx, id, rec.Limits.Grace)
	}
	return err
}

// Collect removes a run whose agent exited from the disk. No client needs to be attached.
func (r *Root) Collect(ctx context.Context, id string) error {
	if err := r.env.collect(ctx, id); err != nil {
		return fmt.Errorf("collect run %s: %w", id, err)
	}
	return nil
}

func (g *localEnv) collect(ctx context.Context, id string) error {
	rec, err := g.record(id)
	if errors.Is(err, os.ErrNotExist) && checkID(id) == nil { // collected before, or never begun
		return errors.Join(g.endLeft(ctx, id, 0), os.RemoveAll(g.path(id)))
	}
	if err != nil {
		return err
	}
	_, err = g.askOnce(ctx, rec, request{Op: opCollect}, stopSlack+defaultGrace)
	if !errors.Is(err, ErrGone) {
		return err
	}
	if err := g.endLeft(ctx, id, 0); err != nil {
		return err
	}
	return os.RemoveAll(g.path(id))
}

// askOnce does a request over a connection of its own. It gives ErrGone when there is no supervisor.
func (g *localEnv) askOnce(ctx context.Context, rec record, q request, wait time.Duration) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l, _, err := g.connect(ctx, rec, hello{Role: roleAsk})
	if err != nil {
		return reply{}, err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = l.serve(func(kind, []byte) error { return nil })
	}()
	answer, err := l.ask(ctx, q)
	l.close()
	<-served
	return answer, err
}

// endLeft ends what is left of a run whose supervisor is gone, or cannot be talked to.
func (g *localEnv) endLeft(ctx context.Context, id string, grace time.Duration) error {
	rec, err := g.record(id)
	if errors.Is(err, os.ErrNotExist) && !g.there(id) {
		return nil // collected: that ended everything
	}
	if errors.Is(err, os.ErrNotExist) { // the supervisor was killed before it wrote down what it had started
		return g.endTree(ctx, id, proctree.New(proctree.ID{}, markOf(id)), grace)
	}
	if err != nil {
		return err
	}
	if rec.Boot != proctree.BootID() {
		return nil
	}
	if rec.Supervisor.Running() {
		if err := endSupervisor(ctx, rec, grace); err != nil {
			return err
		}
	}
	return g.endTree(ctx, id, proctree.New(rec.Agent, markOf(rec.ID)), grace)
}

// endTree ends what is left of a run that has no supervisor, and its control group.
func (g *localEnv) endTree(ctx context.Context, id string, t *proctree.Tree, grace time.Duration) error {
	c := noted(g.dir, g.path(id))
	if err := t.Within(c).End(ctx, grace); err != nil {
		return err
	}
	_ = c.Remove() // one that stays is swept at the next start
	return nil
}

// endSupervisor tells a supervisor to end its agent and itself, and kills one that does not.
func endSupervisor(ctx context.Context, rec record, grace time.Duration) error {
	if err := rec.Supervisor.Signal(unix.SIGTERM); err != nil {
		return fmt.Errorf("end the supervisor: %w", err)
	}
	limit := time.After(max(grace, rec.Limits.Grace) + stopSlack)
	for rec.Supervisor.Running() {
		select {
		case <-time.After(firstPoll):
			continue
		case <-ctx.Done():
		case <-limit:
		}
		return rec.Supervisor.Signal(unix.SIGKILL) // its agent dies with it, the rest is found by its mark
	}
	return nil
}
