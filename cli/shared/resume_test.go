package shared

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

func leftWith(marks ...cli.TurnID) cli.LeftRun {
	left := cli.LeftRun{Run: "run", Alive: true}
	for _, turn := range marks {
		left.Marks = append(left.Marks, cli.Mark{Turn: turn, Note: "1"})
	}
	return left
}

func resume(t *testing.T, p *Pool[*dialect], left cli.LeftRun, turn cli.TurnID) *dialect {
	t.Helper()
	d, err := p.Resume(t.Context(), left, turn)
	if err != nil {
		t.Fatal(err)
	}
	return d.(*dialect)
}

func TestTurnsOfOneRunAreResumedInOneProcess(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		left := leftWith("a", "b")
		a, b := resume(t, p, left, "a"), resume(t, p, left, "b")
		if a != b || a.State() != Attached || a.Alive() || a.PID() != 1 {
			t.Error("it was attached to twice, or takes sessions")
		}
		if _, err := p.Resume(t.Context(), left, "a"); err == nil {
			t.Error("a turn was resumed twice")
		}
		if c := join(t, p); c == a {
			t.Error("a session joined it")
		} else {
			leave(t, c, Closed)
		}
		a.TurnEnded(t.Context(), EndOver)
		b.TurnEnded(t.Context(), EndOver)
		leave(t, a, Closed)
		l.is(t, "running", "stopped")
		leave(t, b, Closed)
		l.is(t, "stopped", "stopped")
		if len(p.attached)+len(p.open) != 0 {
			t.Error("it is still known")
		}
	})
}

func TestATurnThatNoRequestResumesIsDropped(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		d := resume(t, p, leftWith("a", "b"), "a")
		leave(t, d, Closed)
		l.is(t, "running")
		time.Sleep(resumeWait)
		synctest.Wait()
		l.is(t, "stopped")
		if !slices.Equal(d.dropped, []cli.TurnID{"b"}) {
			t.Errorf("dropped %q", d.dropped)
		}
	})
}

func TestDetachingSparesTurnsThatNoRequestResumedYet(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		d := resume(t, p, leftWith("a", "b"), "a")
		leave(t, d, Detaches)
		l.is(t, "detached")
		time.Sleep(resumeWait)
		synctest.Wait()
		l.is(t, "detached")
	})
}

func TestARunThatCannotBeAttachedTo(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		l.fail = errNotThere
		if _, err := p.Resume(t.Context(), leftWith("a"), "a"); !errors.Is(err, errNotThere) {
			t.Error(err)
		}
		if len(p.attached)+len(p.open) != 0 {
			t.Error("it is still known")
		}
	})
}
