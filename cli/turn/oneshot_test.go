package turn

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

// stubborn is a process whose Stop fails as often as it has failures left.
type stubborn struct {
	*fakeProcess
	failures int
}

func (p *stubborn) Stop(ctx context.Context, grace time.Duration) error {
	if p.failures > 0 {
		p.failures--
		return errors.New("it does not end")
	}
	return p.fakeProcess.Stop(ctx, grace)
}

// begun returns a session with a running turn in p.
func begun(t *testing.T, p cli.Process) (*OneShotSession, *Stream) {
	t.Helper()
	s := NewOneShotSession("fake", "/home/7")
	stream, err := s.Begin(t.Context(), p, StreamOptions{Agent: "fake"})
	if err != nil {
		t.Fatal(err)
	}
	return s, stream
}

func TestOneShotSessionIsClosedWithItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		s, stream := begun(t, p)
		if info := s.Info(); info.PID != 42 || info.Alive || info.Mode != cli.OneShot || info.Agent != "fake" {
			t.Errorf("while a turn runs: %+v", info)
		}
		closed := make(chan error, 1)
		go func() { closed <- s.Close(t.Context()) }()
		synctest.Wait()
		select {
		case <-p.done:
		default:
			t.Error("its process was not ended")
		}
		select {
		case <-closed:
			t.Error("closed before the turn was over")
		default:
		}
		if err := s.End(t.Context(), stream, EndExit); err != nil {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("closed again: %v", err)
		}
		if s.Info().PID != 0 || s.Fits(cli.Request{Home: "/home/7"}) {
			t.Errorf("closed, it takes turns, and is %+v", s.Info())
		}
		late := newFakeProcess()
		if _, err := s.Begin(t.Context(), late, StreamOptions{}); cli.AsFailure("", err) == nil {
			t.Error("closed, it began a turn")
		}
		select {
		case <-late.done:
		default:
			t.Error("a process that was started too late goes on")
		}
	})
}

func TestOneShotSessionThatWaitsForItsTurnTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stream := begun(t, newFakeProcess())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed: %v", err)
		}
		if err := s.End(t.Context(), stream, EndExit); err != nil {
			t.Error(err)
		}
	})
}

// A process that could not be stopped does not count as ended: closing the session tries again.
func TestOneShotSessionRemembersWhatDidNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &stubborn{newFakeProcess(), 2}
		s, stream := begun(t, p)
		if err := s.End(t.Context(), stream, EndTurn); err == nil {
			t.Error("it is said to have ended")
		}
		if s.Info().PID == 0 {
			t.Error("nothing is said to run")
		}
		if err := s.Close(t.Context()); err == nil {
			t.Error("it is said to be closed")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-p.done:
		default:
			t.Error("its process goes on")
		}
	})
}

func TestOneShotSessionLetsGo(t *testing.T) {
	left := cli.LeftRun{Run: "run", OutputEnd: 0}
	for name, what := range map[string]func(t *testing.T, s *OneShotSession, p *fakeProcess){
		"of a turn that was adopted": func(t *testing.T, s *OneShotSession, p *fakeProcess) {
			s.Adopt(p, StreamOptions{Agent: "fake"}, left)
			s.Detach()
		},
		"of one that is gone on with": func(t *testing.T, s *OneShotSession, p *fakeProcess) {
			s.Adopt(p, StreamOptions{Agent: "fake"}, left)
			stream, got := s.GoOn()
			if stream == nil || got.Run != "run" {
				t.Fatalf("to go on with: %v, %+v", stream, got)
			}
			if again, _ := s.GoOn(); again != nil {
				t.Error("it is gone on with twice")
			}
			stream.Detach()
			if err := s.End(t.Context(), stream, EndDetached); err != nil {
				t.Error(err)
			}
			s.Detach()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := NewOneShotSession("fake", ""), newFakeProcess()
				what(t, s, p)
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if !p.isDetached() || len(p.stops) > 0 {
					t.Errorf("let go of: %v, stopped %d times", p.isDetached(), len(p.stops))
				}
				_ = p.outW.Close()
			})
		})
	}
}

func TestOneShotSessionClosesWhatWasAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := NewOneShotSession("fake", ""), newFakeProcess()
		s.Adopt(p, StreamOptions{Agent: "fake"}, cli.LeftRun{Run: "run"})
		if err := s.Close(t.Context()); err != nil || len(p.stops) == 0 {
			t.Errorf("closed: %v, stopped %d times", err, len(p.stops))
		}
		if stream, _ := s.GoOn(); stream != nil {
			t.Error("what was closed is gone on with")
		}
	})
}

// A turn gets the adopted stream, or that of its own process, or the reason why there is none.
func TestOneShotSessionOpens(t *testing.T) {
	gone, abort := context.WithCancelCause(t.Context())
	abort(cli.ErrAborted)
	for _, c := range []struct {
		name    string
		ctx     context.Context
		adopted bool
		err     error // of the start
		starts  int
		told    string
	}{
		{name: "one that was adopted", ctx: t.Context(), adopted: true},
		{name: "one of its own", ctx: t.Context(), starts: 1},
		{name: "a process that does not start", ctx: t.Context(), err: cli.Failf(cli.NotInstalled, "fake", "it is not there"), starts: 1, told: "it is not there"},
		{name: "a turn that was aborted before", ctx: gone, told: "aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, starts, told := newFakeProcess(), 0, ""
			how := &OneShot{
				Agent: "fake", Options: cli.ProviderOptions{}.OrDefault("fake"),
				Input: func(cli.Request, *cli.LeftRun) ([]byte, error) { return []byte("hi"), nil },
				Start: func(context.Context, cli.Request) (cli.Process, string, error) {
					starts++
					return p, "", c.err
				},
				Read: func(Once) Reading {
					return Reading{Result: func(End) cli.Result { return cli.Result{} }}
				},
			}
			s := how.session(cli.Request{})
			if c.adopted {
				s.Adopt(p, StreamOptions{Agent: "fake"}, cli.LeftRun{Run: "run"})
			}
			p.die(cli.ExitStatus{})
			s.Turn(c.ctx, cli.Request{}, func(ev cli.Event) {
				r, _ := ev.(cli.Result)
				switch {
				case r.Aborted:
					told = "aborted"
				case r.Err != nil:
					told = r.Err.Why().String()
				}
			})
			if starts != c.starts || told != c.told {
				t.Errorf("%d starts, told %q", starts, told)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			_ = p.outW.Close()
		})
	}
}

func TestOneShotSessionFits(t *testing.T) {
	s := NewOneShotSession("fake", "/home/7")
	if !s.Fits(cli.Request{Home: "/home/7"}) || !s.Fits(cli.Request{Home: "/home/7", Resume: "any"}) || s.Fits(cli.Request{}) {
		t.Error("a new session is any of its home's")
	}
	s.Named("one")
	s.Named("")
	if !s.Fits(cli.Request{Home: "/home/7", Resume: "one"}) || s.Fits(cli.Request{Home: "/home/7", Resume: "two"}) || s.Fits(cli.Request{Home: "/home/7"}) {
		t.Error("a session that has a name is another")
	}
}

// Only the part of a prompt is sent that has not reached the program.
func TestStreamSendsTheRestOfItsOnlyInput(t *testing.T) {
	for name, c := range map[string]struct {
		left *cli.LeftRun
		want string
	}{
		"just started":          {nil, "windmill"},
		"nothing had arrived":   {&cli.LeftRun{}, "windmill"},
		"a part had":            {&cli.LeftRun{Input: cli.LeftInput{End: 4}}, "mill"},
		"all had, but its end":  {&cli.LeftRun{Input: cli.LeftInput{End: 8}}, ""},
		"all had":               {&cli.LeftRun{Input: cli.LeftInput{End: 8, Closed: true}}, ""},
		"more than that":        {&cli.LeftRun{Input: cli.LeftInput{End: 99}}, ""},
		"its input was cut off": {&cli.LeftRun{Input: cli.LeftInput{End: 4, Closed: true}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakeProcess()
				stream := NewStream(p, StreamOptions{})
				if err := stream.SendOnly([]byte("windmill"), c.left); err != nil {
					t.Error(err)
				}
				var got strings.Builder
				if _, err := io.Copy(&got, p.inR); err != nil || got.String() != c.want {
					t.Errorf("it read %q, %v", got.String(), err)
				}
				if err := stream.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestStreamLingersForNoLongerThanItsGrace(t *testing.T) {
	for name, c := range map[string]struct{ lives, want time.Duration }{
		"a program that goes by itself": {time.Second, time.Second},
		"one that does not":             {time.Hour, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakeProcess()
				stream := NewStream(p, StreamOptions{Limits: Limits{Grace: 3 * time.Second}})
				time.AfterFunc(c.lives, func() { p.die(cli.ExitStatus{}) })
				began := time.Now()
				stream.Linger(t.Context())
				if took := time.Since(began); took != c.want {
					t.Errorf("lingered for %v, want %v", took, c.want)
				}
				if err := stream.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestStreamOptionsOfADialect(t *testing.T) {
	o := cli.ProviderOptions{Timing: cli.Timing{Grace: 1, Stall: 2, ToolStall: 3}}
	if got := StreamOptionsOf(o, "a"); got.Agent != "a" || got.Grace != 1 || got.Stall != 2 || got.ToolStall != 3 {
		t.Errorf("a stream gets %+v", got)
	}
}
