package shared

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

func leftWith(marks ...cli.TurnID) cli.LeftRun {
	left := cli.LeftRun{Run: "run", Purpose: cli.Purpose{Setting: "key"}, Alive: true}
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
	return d
}

func TestTurnsOfOneRunAreResumedInOneProcess(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		left := leftWith("a", "b", cli.RestMark)
		a, b := resume(t, p, left, "a"), resume(t, p, left, "b")
		if a != b || !a.Attached() || !a.Alive() {
			t.Error("it was attached to twice, or takes no session")
		}
		if _, err := p.Resume(t.Context(), left, "a"); err == nil {
			t.Error("a turn was resumed twice")
		}
		c := join(t, p)
		a.TurnEnded(t.Context(), EndOver)
		b.TurnEnded(t.Context(), EndOver)
		synctest.Wait()
		if !slices.Equal(l.programs[0].recorded(), []cli.TurnID{cli.RestMark + "!"}) {
			t.Errorf("recorded %q", l.programs[0].recorded())
		}
		for _, d := range []*dialect{a, b, c} {
			l.is(t, "running")
			leave(t, d, Closed)
		}
		l.is(t, "stopped")
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

func TestLeftoversOfARunEndWithItsLastTurn(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		d := resume(t, p, leftWith(cli.SpoilMark, "a"), "a")
		if d.State() != Ending || p.PID("key") != 0 {
			t.Errorf("it is %s", d.State())
		}
		d.TurnEnded(t.Context(), EndOver)
		l.is(t, "stopped")
		leave(t, d, Closed)
	})
}

func TestARunThatCannotBeAttachedTo(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		l.fail = errNotThere
		if _, err := p.Resume(t.Context(), leftWith("a"), "a"); !errors.Is(err, errNotThere) {
			t.Error(err)
		}
		if _, err := p.Keep(t.Context(), leftWith(), nil); !errors.Is(err, errNotThere) {
			t.Error(err)
		}
		if len(p.attached)+len(p.open) != 0 {
			t.Error("it is still known")
		}
	})
}

func TestASessionWaitsForTheProcessThatIsTakenOver(t *testing.T) {
	for name, refused := range map[string]error{"kept": nil, "not kept": errors.New("it is another version")} {
		t.Run(name, func(t *testing.T) {
			test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
				inherited := make(chan struct{})
				joined := make(chan *dialect)
				go func() {
					synctest.Wait()
					joined <- join(t, p)
				}()
				go func() {
					time.Sleep(time.Second)
					close(inherited)
				}()
				k, err := p.Keep(t.Context(), leftWith(), func(context.Context, *dialect) error {
					<-inherited
					return refused
				})
				if !errors.Is(err, refused) {
					t.Error(err)
				}
				if d := <-joined; refused != nil {
					l.is(t, "detached", "running")
					leave(t, d, Closed)
					return
				} else if k.PID != 1 || !k.Alive() || d.Program().PID() != 1 {
					t.Errorf("kept %d, joined %d", k.PID, d.Program().PID())
				}
				if err := k.Close(t.Context()); err != nil {
					t.Error(err)
				}
				l.is(t, "running") // a session is in it
				if _, err := p.Keep(t.Context(), leftWith(), nil); err == nil {
					t.Error("two processes of one setting are kept")
				}
				k.Detach()
				l.is(t, "detached")
			})
		})
	}
}
