package shared

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

func test(t *testing.T, f func(t *testing.T, p *Pool[*dialect], l *launcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &launcher{}
		f(t, newTestPool(l), l)
	})
}

func TestTheLastSessionThatLeavesEndsTheProcess(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		a, b := join(t, p), join(t, p)
		if a != b || p.PID("key") != 1 || a.Alone() {
			t.Fatalf("%p and %p share %d", a, b, p.PID("key"))
		}
		leave(t, a, Closed)
		l.is(t, "running")
		if !b.Alone() || !b.Alive() {
			t.Error("one session is left, and alone")
		}
		leave(t, b, Closed)
		l.is(t, "stopped")
		if b.State() != Dead || p.PID("key") != 0 {
			t.Errorf("it is %s", b.State())
		}
		c := join(t, p)
		leave(t, c, Closed)
		l.is(t, "stopped", "stopped")
	})
}

// A process that served well gets time to end by itself; a process whose start was given up does not.
func TestAProcessEndsWithItsInput(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		began := time.Now()
		leave(t, join(t, p), Closed)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it had %s to end", took)
		}
		began = time.Now()
		leave(t, join(t, p), Unused)
		l.eof = true
		leave(t, join(t, p), Closed)
		if took := time.Since(began); took != 0 {
			t.Errorf("it had %s to end", took)
		}
	})
}

func TestAStartLivesAsLongAsASessionWaitsForIt(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		l.wait = make(chan struct{})
		first, giveUp := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := p.Join(first, "key", cli.Command{})
			failed <- err
		}()
		synctest.Wait()
		joined := make(chan *dialect)
		go func() { joined <- join(t, p) }()
		synctest.Wait()
		giveUp()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if p.PID("key") != 0 {
			t.Error("a process that starts has no number yet")
		}
		close(l.wait)
		leave(t, <-joined, Closed)
		l.is(t, "stopped")

		l.wait = make(chan struct{})
		alone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Join(alone, "key", cli.Command{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		l.is(t, "stopped") // the start ended with the only session that wanted it
	})
}

func TestAProcessThatCannotBeUsedIsLeftByAll(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		l.fail = errNotThere
		_, err := p.Join(t.Context(), "key", cli.Command{})
		if f := cli.AsFailure("agent", err); f.Kind != cli.NotInstalled {
			t.Errorf("%+v", f)
		}
		l.fail = nil
		p.server = func(proc *Process) *dialect { return &dialect{Process: proc, greet: errors.New("it is mute")} }
		if _, err := p.Join(t.Context(), "key", cli.Command{}); err == nil || len(p.open) != 0 {
			t.Errorf("%v; %d are open", err, len(p.open))
		}
		l.is(t, "stopped")
	})
}

func TestAProcessThatDiesIsReplaced(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		a := join(t, p)
		close(l.programs[0].done) // its output continues for a moment
		b := join(t, p)
		if a.Alive() || a == b {
			t.Error("a session joined a program that had ended")
		}
		_ = l.programs[0].out.Close()
		l.programs[0].once.Do(func() {})
		<-a.Gone()
		if f := a.Failure(); f.Kind != cli.Crashed || a.State() != Dead {
			t.Errorf("%s: %+v", a.State(), f)
		}
		leave(t, a, Closed)
		leave(t, b, Closed)
	})
}

func TestASessionThatDetachesHasTheProcessGoOn(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		a, b := join(t, p), join(t, p)
		leave(t, a, Detaches)
		if b.State() != Detached || p.PID("key") != 0 {
			t.Errorf("it is %s", b.State())
		}
		l.is(t, "running")
		leave(t, b, Closed)
		l.is(t, "detached")
		if f := b.Failure(); !errors.Is(f, cli.ErrDetached) {
			t.Errorf("%+v", f)
		}
	})
}

// Child processes of an aborted turn are killed at once if no other turn is running, otherwise with the last turn.
func TestLeftoversEndWithTheLastTurn(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		d := join(t, p)
		d.TurnStarted()
		if !d.TurnStarted() {
			t.Error("it takes no turn")
		}
		d.TurnEnded(t.Context(), EndLeftovers)
		synctest.Wait()
		if d.Alive() {
			t.Errorf("it is %s", d.State())
		}
		l.is(t, "running")
		other := join(t, p)
		if other == d {
			t.Error("a session joined it")
		}
		d.TurnEnded(t.Context(), EndOver)
		l.is(t, "stopped", "running")
		leave(t, d, Closed)
		leave(t, other, Closed)
	})
}

func TestADrainingProcessEndsWithItsSessions(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		d := join(t, p)
		join(t, p)
		d.TurnStarted()
		if !d.Drain() {
			t.Error("no other turn runs")
		}
		if d.TurnStarted() || d.Drain() {
			t.Error("it takes a turn, or does not count it")
		}
		d.TurnEnded(t.Context(), EndOver)
		d.TurnEnded(t.Context(), EndOver)
		leave(t, d, Closed)
		l.is(t, "running")
		leave(t, d, Broken)
		l.is(t, "stopped")
		if !d.GivenUp() || d.State() != Dead {
			t.Errorf("it is %s", d.State())
		}
	})
}

func TestManySessionsComeAndGo(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		done := make(chan bool)
		for i := range 50 {
			go func() {
				defer func() { done <- true }()
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				d := join(t, p)
				d.TurnStarted()
				time.Sleep(time.Duration(i%5) * time.Millisecond)
				d.TurnEnded(t.Context(), []TurnEnd{EndOver, EndOver, EndLeftovers}[i%3])
				leave(t, d, Unused)
			}()
		}
		for range 50 {
			<-done
		}
		for _, program := range l.programs {
			if program.became() != "stopped" {
				t.Errorf("the program %d is %s", program.pid, program.became())
			}
		}
		if len(p.open) != 0 {
			t.Error("a process is open, and no session is in it")
		}
	})
}
