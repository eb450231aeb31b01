package turn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/lang"
)

// script runs one turn on a fake process, and records its end and the handled lines in order. Lines that reach Idle are
// in parentheses.
type script struct {
	t       *testing.T
	p       *fakeProcess
	s       *Stream
	mu      sync.Mutex
	handled []string
}

func newScript(t *testing.T, p *fakeProcess, opts StreamOptions) *script {
	sc := &script{t: t, p: p}
	opts.Agent = "fake"
	opts.Idle = func(l []byte) { sc.note("(" + string(l) + ")") }
	sc.s = NewStream(p, opts)
	return sc
}

func (sc *script) note(s string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.handled = append(sc.handled, s)
}

func (sc *script) seen() string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return strings.Join(sc.handled, " ")
}

// turn runs a turn that the line "end" ends.
func (sc *script) turn(ctx context.Context, loop Loop[[]byte]) End {
	loop.Handle = func(l []byte) bool { sc.note(string(l)); return string(l) == "end" }
	return sc.s.Turn(ctx, loop)
}

func (sc *script) close() {
	sc.t.Helper()
	for range 2 {
		if err := sc.s.Close(context.Background()); err != nil {
			sc.t.Error(err)
		}
	}
}

func TestStreamGivesEachTurnItsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		sc := newScript(t, p, StreamOptions{})
		p.print("hello")
		synctest.Wait()
		begin := func() { go p.print("1", "2", "end", "after") }
		if end := sc.turn(t.Context(), Loop[[]byte]{Begin: begin}); end != EndTurn {
			t.Errorf("first turn ended as %q", end)
		}
		synctest.Wait()
		p.print("between")
		synctest.Wait()
		begin = func() { go p.print("3", "end") }
		if end := sc.turn(t.Context(), Loop[[]byte]{Begin: begin}); end != EndTurn {
			t.Errorf("second turn ended as %q", end)
		}
		if want := "(hello) 1 2 end (after) (between) 3 end"; sc.seen() != want {
			t.Errorf("handled %q, want %q", sc.seen(), want)
		}
		sc.close()
	})
}

func TestStreamSendsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		sc := newScript(t, p, StreamOptions{})
		lines := bufio.NewScanner(p.inR)
		for i := range 3 { // nobody reads yet: Send must not block
			if err := sc.s.Send(fmt.Appendf(nil, "%d\n", i)); err != nil {
				t.Fatal(err)
			}
		}
		sc.s.CloseInput()
		if err := sc.s.Send([]byte("late\n")); err == nil {
			t.Error("a send after CloseInput went through")
		}
		var got []string
		for lines.Scan() {
			got = append(got, lines.Text())
		}
		if diff := cmp.Diff([]string{"0", "1", "2"}, got); diff != "" {
			t.Error(diff)
		}
		sc.close()
	})
}

func TestStreamHandlesAllBeforeTheExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		p.stderr = "warming up\npanic: no more\n"
		sc := newScript(t, p, StreamOptions{})
		end := sc.turn(t.Context(), Loop[[]byte]{Begin: func() {
			go func() {
				p.print("1", "2", "3")
				p.die(cli.ExitStatus{Code: 3})
			}()
		}})
		if end != EndExit || sc.seen() != "1 2 3" {
			t.Errorf("ended as %q after %q", end, sc.seen())
		}
		r := sc.s.Outcome(end)
		want := &cli.Failure{Kind: cli.Crashed, Agent: "fake", Code: 3, Reason: "panic: no more", Detail: "warming up\npanic: no more"}
		if diff := cmp.Diff(want, r.Err); diff != "" {
			t.Error(diff)
		}
		if end := sc.turn(t.Context(), Loop[[]byte]{}); end != EndExit {
			t.Errorf("a turn of a dead program ends as %q", end)
		}
		sc.close()
	})
}

func TestStreamFailure(t *testing.T) {
	for _, tc := range []struct {
		name    string
		garbage string
		stderr  string
		exit    cli.ExitStatus
		want    cli.Failure
	}{
		{"silent exit", "", "", cli.ExitStatus{}, cli.Failure{Kind: cli.Crashed, Own: lang.NewMessage("failure.no-words")}},
		{"killed", "", "", cli.ExitStatus{Code: -9, Signal: true}, cli.Failure{Kind: cli.Crashed, Code: -9}},
		{"garbage", "\x00junk", "", cli.ExitStatus{Code: 1}, cli.Failure{Kind: cli.BadOutput, Code: 1, Own: lang.NewMessage("failure.garbage", 1), Detail: "\x00junk"}},
		{"garbage and exit 0", "junk", "by the way", cli.ExitStatus{}, cli.Failure{Kind: cli.BadOutput, Own: lang.NewMessage("failure.garbage", 1), Detail: "junk"}},
		{"garbage and a reason", "junk", "out of memory", cli.ExitStatus{Code: 1}, cli.Failure{Kind: cli.Crashed, Code: 1, Reason: "out of memory", Detail: "out of memory"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakeProcess()
				p.stderr = tc.stderr
				sc := newScript(t, p, StreamOptions{})
				sc.turn(t.Context(), Loop[[]byte]{Begin: func() {
					if tc.garbage != "" {
						sc.s.Garbage([]byte(tc.garbage))
					}
					p.die(tc.exit)
				}})
				tc.want.Agent = "fake"
				if diff := cmp.Diff(&tc.want, sc.s.Failure()); diff != "" {
					t.Error(diff)
				}
				sc.close()
			})
		})
	}
}

func TestOversizedLineIsGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		sc := newScript(t, p, StreamOptions{MaxLine: 10})
		sc.turn(t.Context(), Loop[[]byte]{Begin: func() {
			go func() {
				p.print("short", strings.Repeat("long", 100), "more")
				p.die(cli.ExitStatus{})
			}()
		}})
		if f := sc.s.Failure(); sc.seen() != "short more" || f.Kind != cli.BadOutput || !strings.HasPrefix(f.Detail, "longlong") {
			t.Errorf("handled %q, failure %+v", sc.seen(), f)
		}
		sc.close()
	})
}

// The end of a cancelled turn, and the time until then.
func TestStreamCancel(t *testing.T) {
	const grace = 2 * time.Second
	for _, tc := range []struct {
		name      string
		interrupt func(p *fakeProcess) error // nil for a protocol without an interrupt
		obeys     time.Duration
		took      time.Duration
		stops     int
		seen      string
	}{
		{"no interrupt, obeys SIGTERM", nil, 3 * time.Millisecond, 3 * time.Millisecond, 1, "1"},
		{"no interrupt, ignores SIGTERM", nil, time.Hour, grace, 1, "1"},
		{"interrupt fails", func(*fakeProcess) error { return errors.New("no") }, time.Millisecond, time.Millisecond, 1, "1"},
		{"interrupt is obeyed", func(p *fakeProcess) error {
			go func() { time.Sleep(5 * time.Millisecond); p.print("bye", "end") }()
			return nil
		}, time.Hour, 5 * time.Millisecond, 0, "1 bye end"},
		{"interrupt makes it exit", func(p *fakeProcess) error {
			go func() { time.Sleep(7 * time.Millisecond); p.die(cli.ExitStatus{}) }()
			return nil
		}, time.Hour, 7 * time.Millisecond, 0, "1"},
		{"interrupt gets no reaction", func(*fakeProcess) error { return nil }, time.Millisecond,
			DefaultInterruptWait + time.Millisecond, 1, "1"},
		{"interrupt gets a reaction and no end", func(p *fakeProcess) error {
			go p.print("soon")
			return nil
		}, time.Millisecond, grace/2 + time.Millisecond, 1, "1 soon"},
		{"all is ignored", func(p *fakeProcess) error { go p.print("no"); return nil }, time.Hour, grace, 1, "1 no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakeProcess()
				p.obeys = tc.obeys
				sc := newScript(t, p, StreamOptions{Limits: Limits{Grace: grace}})
				ctx, cancel := context.WithCancelCause(t.Context())
				loop := Loop[[]byte]{Begin: func() { go p.print("1") }}
				if tc.interrupt != nil {
					loop.Interrupt = func() error { return tc.interrupt(p) }
				}
				var began time.Time
				time.AfterFunc(time.Second, func() { began = time.Now(); cancel(cli.ErrAborted) })
				end := sc.turn(ctx, loop)
				if took := time.Since(began); end != EndCancelled || took != tc.took || len(p.stops) != tc.stops || sc.seen() != tc.seen {
					t.Errorf("ended as %q in %s after %q with %d stops, want %s, %q, %d", end, took, sc.seen(), len(p.stops), tc.took, tc.seen, tc.stops)
				}
				if r := sc.s.Outcome(end); !r.Aborted || r.Err != nil {
					t.Errorf("outcome %+v", r)
				}
				sc.close()
			})
		})
	}
}

func TestStreamStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		sc := newScript(t, p, StreamOptions{Limits: Limits{Stall: time.Minute, ToolStall: 10 * time.Minute}})
		busy := false
		began := time.Now()
		end := sc.s.Turn(t.Context(), Loop[[]byte]{
			Begin: func() {
				go func() {
					time.Sleep(50 * time.Second)
					p.print("tool")
					time.Sleep(9 * time.Minute) // long, but a tool is open
					p.print("tool ended")
				}()
			},
			Handle: func(l []byte) bool { busy = string(l) == "tool"; return false },
			Busy:   func() bool { return busy },
		})
		if took, want := time.Since(began), 50*time.Second+9*time.Minute+time.Minute; end != EndStalled || took != want {
			t.Errorf("ended as %q after %s, want %s", end, took, want)
		}
		if r := sc.s.Outcome(end); r.Err == nil || r.Err.Kind != cli.TimedOut || !strings.Contains(r.Err.Error(), "1 min") {
			t.Errorf("outcome %+v", r.Err)
		}
		sc.close()
	})
}

func TestStreamStallWithATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		sc := newScript(t, p, StreamOptions{Limits: Limits{Stall: time.Minute, ToolStall: 10*time.Minute + time.Second}})
		began := time.Now()
		end := sc.turn(t.Context(), Loop[[]byte]{Busy: func() bool { return true }})
		if took, want := time.Since(began), 10*time.Minute+time.Second; end != EndStalled || took != want {
			t.Errorf("ended as %q after %s, want %s", end, took, want)
		}
		sc.close()
	})
}

// A program without any output is stopped sooner than one that falls silent, and the failure has its last words.
func TestStreamThatNeverSpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for spoke, want := range map[bool]time.Duration{false: time.Minute, true: 5 * time.Minute} {
			p := newFakeProcess()
			p.stderr = "no space left on device"
			sc := newScript(t, p, StreamOptions{Limits: Limits{First: time.Minute, Stall: 5 * time.Minute}})
			began := time.Now()
			end := sc.s.Turn(t.Context(), Loop[[]byte]{
				Begin: func() {
					if spoke {
						p.print("hello")
					}
				},
				Handle: func([]byte) bool { return false },
			})
			if took := time.Since(began); end != EndStalled || took != want {
				t.Errorf("ended as %q after %s, want %s", end, took, want)
			}
			r := sc.s.Outcome(end)
			told := r.Err != nil && r.Err.Kind == cli.UnknownFailure && strings.Contains(r.Err.Why().String(), "did not start within 1 min: no space left on device")
			if told == spoke {
				t.Errorf("outcome %+v", r.Err)
			}
			sc.close()
		}
	})
}

// A program that closes its output and continues to run delays nobody.
func TestStreamOutputClosedButAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		sc := newScript(t, p, StreamOptions{})
		end := sc.turn(t.Context(), Loop[[]byte]{Begin: func() { _ = p.outW.Close() }})
		if end != EndExit || len(p.stops) != 1 {
			t.Errorf("ended as %q with %d stops", end, len(p.stops))
		}
		if f := sc.s.Failure(); f.Kind != cli.Crashed || f.Code != -15 {
			t.Errorf("failure %+v", f)
		}
		sc.close()
	})
}

// A slow turn slows down the program instead of filling the memory, and loses nothing.
func TestStreamIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		sc := newScript(t, p, StreamOptions{})
		big := strings.Repeat("x", queuedLines/4)
		var printed atomic.Int64
		handled := 0
		sc.s.Turn(t.Context(), Loop[[]byte]{
			Begin: func() {
				go func() {
					for range 20 {
						p.print(big)
						printed.Add(1)
					}
					p.die(cli.ExitStatus{})
				}()
			},
			Handle: func([]byte) bool {
				synctest.Wait() // until the program can print no more
				if handled++; printed.Load() > int64(handled+9) {
					t.Errorf("%d lines were taken of the program when %d were handled", printed.Load(), handled)
				}
				return false
			},
		})
		if handled != 20 {
			t.Errorf("%d lines were handled", handled)
		}
		sc.close()
	})
}

func TestStreamCloseFreesAWriterThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := newScript(t, newFakeProcess(), StreamOptions{})
		if err := sc.s.Send([]byte("nobody reads this\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		sc.close()
	})
}
