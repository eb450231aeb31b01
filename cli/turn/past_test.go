package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ductor/cli"
)

// adopt returns a fake process with text as its past, to which a Host attached at offset from.
func adopt(text string, from int) (*fakeProcess, *Past) {
	p := newFakeProcess()
	p.past = []byte(text[from:])
	return p, &Past{From: int64(from), Until: int64(len(text))}
}

// heard runs an adopted turn that the line "end" ends, and returns its lines and changes in order.
func heard(ctx context.Context, s *Stream, begin func()) (End, string) {
	var told []string
	out := NewEmitter("fake", time.Now, func(ev cli.Event) {
		switch ev := ev.(type) {
		case cli.CaughtUp:
			told = append(told, "|")
		case cli.Status:
			told = append(told, "<"+ev.Detail+">")
		}
	})
	end := s.Turn(ctx, Loop[[]byte]{Out: out, Begin: begin, Handle: func(l []byte) bool {
		told = append(told, string(l))
		return string(l) == "end"
	}})
	return end, strings.Join(told, " ")
}

// CaughtUp comes once, after the last line that was complete when ductor attached to the process.
func TestStreamCatchesUp(t *testing.T) {
	for _, tc := range []struct {
		name string
		past string
		from int
		now  func(p *fakeProcess)
		want string
		end  End
	}{
		{"whole lines", "a\nb\n", 0, func(p *fakeProcess) { p.print("c", "end") }, "a b | c end", EndTurn},
		{"from an offset", "a\nb\n", 2, func(p *fakeProcess) { p.print("c", "end") }, "b | c end", EndTurn},
		{"half a line", "a\nbe", 0, func(p *fakeProcess) { p.print("fore", "end") }, "a | before end", EndTurn},
		{"half a line only", "be", 0, func(p *fakeProcess) { p.print("fore", "end") }, "| before end", EndTurn},
		{"nothing", "", 0, func(p *fakeProcess) { p.print("a", "end") }, "| a end", EndTurn},
		{"nothing since the offset", "a\n", 2, func(p *fakeProcess) { p.print("b", "end") }, "| b end", EndTurn},
		{"the turn's end", "a\nend\n", 0, func(*fakeProcess) {}, "a end |", EndTurn},
		{"the program's end", "a\nb", 0, func(p *fakeProcess) { p.die(cli.ExitStatus{}) }, "a | b", EndExit},
		{"the program's end and nothing else", "", 0, func(p *fakeProcess) { p.die(cli.ExitStatus{}) }, "|", EndExit},
		{"more than a buffer", strings.Repeat("x", 200_000) + "\n", 0, func(p *fakeProcess) { p.print("end") },
			strings.Repeat("x", 200_000) + " | end", EndTurn},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, past := adopt(tc.past, tc.from)
				s := NewStream(p, StreamOptions{Agent: "fake", Past: past})
				end, got := heard(t.Context(), s, func() { go tc.now(p) })
				if got != tc.want || end != tc.end {
					t.Errorf("heard %q and ended as %q, want %q and %q", got, end, tc.want, tc.end)
				}
				if len(p.marks) > 0 {
					t.Errorf("an adopted turn was marked again: %+v", p.marks)
				}
				closeStream(t, s)
			})
		})
	}
}

func closeStream(t *testing.T, s *Stream) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// Past output is read at full speed, however small its pieces; CaughtUp does not wait either.
func TestStreamCatchesUpAtFullSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines = 1000
		p, past := adopt(strings.Repeat("word\n", lines), 0)
		p.piece = 5
		s := NewStream(p, StreamOptions{Agent: "fake", Past: past})
		began := time.Now()
		go func() { time.Sleep(time.Hour); p.print("end") }()
		s.opts.Stall = 2 * time.Hour
		var caught time.Duration
		out := NewEmitter("fake", time.Now, func(ev cli.Event) { caught = time.Since(began) })
		n := 0
		s.Turn(t.Context(), Loop[[]byte]{Out: out, Handle: func(l []byte) bool { n++; return string(l) == "end" }})
		if n != lines+1 || caught != 0 {
			t.Errorf("%d lines, caught up after %s", n, caught)
		}
		closeStream(t, s)
	})
}

// A new turn in an adopted process does not handle earlier output as its own.
func TestStreamTurnAfterAnIdlePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, past := adopt("old\nend\n", 0)
		p.slow = time.Second
		var idle []string
		s := NewStream(p, StreamOptions{Agent: "fake", Past: past, Idle: func(l []byte) { idle = append(idle, string(l)) }})
		var events []cli.Event
		out := NewEmitter("fake", time.Now, func(ev cli.Event) { events = append(events, ev) })
		var got []string
		end := s.Turn(t.Context(), Loop[[]byte]{
			Out: out, Mark: cli.Mark{Turn: "2"}, Begin: func() {
				<-s.CaughtUp()
				idle = append(idle, "|")
				go p.print("new", "end")
			},
			Handle: func(l []byte) bool { got = append(got, string(l)); return string(l) == "end" },
		})
		if end != EndTurn || strings.Join(got, " ") != "new end" || strings.Join(idle, " ") != "old end |" || len(events) > 0 {
			t.Errorf("ended as %q, the turn got %q and %v, idle %q", end, got, events, idle)
		}
		if diff := cmp.Diff([]cli.Mark{{Turn: "2", Output: 8}}, p.marks); diff != "" {
			t.Error(diff)
		}
		closeStream(t, s)
	})
}

// A loss is reported, and only the line that it tore is lost.
func TestStreamLostOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		s := NewStream(p, StreamOptions{Agent: "fake"})
		p.losses = []*cli.LostOutput{{From: 6, To: 100}}
		end, got := heard(t.Context(), s, func() {
			go func() {
				p.print("a", "b")
				_, _ = io.WriteString(p.outW, "to") // torn
				p.lose()
				p.print("rn", "c", "end")
			}()
		})
		want := "a b <94 bytes of the output are lost: it was more than ductor stores> c end"
		if got != want || end != EndTurn {
			t.Errorf("heard %q and ended as %q, want %q", got, end, want)
		}
		if err := s.Mark(t.Context(), cli.Mark{Turn: "x"}); err != nil || p.marks[0].Output != 100+3+2+4 {
			t.Errorf("%v, marks %+v", err, p.marks)
		}
		closeStream(t, s)
	})
}

// A turn's mark is after all handled output, before its own input, and after all earlier input.
func TestStreamMarksTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		var read bytes.Buffer
		var reader sync.WaitGroup
		reader.Go(func() { _, _ = io.Copy(&read, slowly{p.inR}) })
		var sent []string
		p.begun = func(cli.Mark) error { synctest.Wait(); sent = append(sent, read.String()); return nil }
		s := NewStream(p, StreamOptions{Agent: "fake", Idle: func([]byte) {}})
		for i, turn := range []cli.TurnID{"1", "2"} {
			if err := s.Send([]byte(fmt.Sprintf("before %s\n", turn))); err != nil {
				t.Fatal(err)
			}
			end := s.Turn(t.Context(), Loop[[]byte]{
				Mark: cli.Mark{Turn: turn, Note: "n"},
				Begin: func() {
					if err := s.Send([]byte("ask " + turn + "\n")); err != nil {
						t.Error(err)
					}
					go p.print(strings.Repeat("é", i+1), "end", "after")
				},
				Handle: func(l []byte) bool { return string(l) == "end" },
			})
			if end != EndTurn {
				t.Errorf("ended as %q", end)
			}
			synctest.Wait()
		}
		want := []cli.Mark{{Turn: "1", Note: "n"}, {Turn: "2", Output: int64(len("é\nend\nafter\n")), Note: "n"}}
		if diff := cmp.Diff(want, p.marks); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"before 1\n", "before 1\nask 1\nbefore 2\n"}, sent); diff != "" {
			t.Errorf("what the program had at each mark: %s", diff)
		}
		closeStream(t, s)
		reader.Wait()
	})
}

// slowly waits a second before each read.
type slowly struct{ r io.Reader }

func (s slowly) Read(p []byte) (int, error) { time.Sleep(time.Second); return s.r.Read(p) }

func TestStreamTurnThatCannotBeMarked(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cause error
		end   End
		stops int
	}{
		{"for a reason of its own", nil, EndExit, 1},
		{"because it was aborted", cli.ErrAborted, EndCancelled, 1},
		{"because ductor let go of it", cli.ErrDetached, EndDetached, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakeProcess()
				ctx, cancel := context.WithCancelCause(t.Context())
				p.begun = func(cli.Mark) error {
					if tc.cause != nil {
						cancel(tc.cause)
					}
					return errors.New("no answer")
				}
				s := NewStream(p, StreamOptions{Agent: "fake"})
				var sent bytes.Buffer
				var read sync.WaitGroup
				read.Go(func() { _, _ = io.Copy(&sent, p.inR) })
				end := s.Turn(ctx, Loop[[]byte]{
					Mark:      cli.Mark{Turn: "1"},
					Begin:     func() { t.Error("it was begun") },
					Interrupt: func() error { return s.Send([]byte("interrupt")) },
				})
				if end != tc.end || len(p.stops) != tc.stops || p.isDetached() != (tc.end == EndDetached) {
					t.Errorf("ended as %q with %d stops, detached %v", end, len(p.stops), p.isDetached())
				}
				r := s.Outcome(end)
				if tc.end == EndExit && (r.Err == nil || r.Err.Kind != cli.Crashed || !strings.Contains(r.Err.Why().String(), "not asked")) {
					t.Errorf("outcome %+v", r.Err)
				}
				if tc.end != EndDetached {
					closeStream(t, s)
				}
				read.Wait()
				if sent.Len() > 0 {
					t.Errorf("%q was sent", sent.String())
				}
				cancel(nil)
			})
		})
	}
}

func TestStreamDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		s := NewStream(p, StreamOptions{Agent: "fake"})
		ctx, cancel := context.WithCancelCause(t.Context())
		end, got := heard(ctx, s, func() {
			go func() {
				p.print("a")
				synctest.Wait()
				if err := s.Send([]byte("nobody reads this\n")); err != nil {
					t.Error(err)
				}
				cancel(cli.ErrDetached)
			}()
		})
		if end != EndDetached || got != "a" || !p.isDetached() || len(p.stops) > 0 {
			t.Errorf("ended as %q after %q, detached %v, %d stops", end, got, p.isDetached(), len(p.stops))
		}
		if r := s.Outcome(end); !r.Detached || r.Err != nil {
			t.Errorf("outcome %+v", r)
		}
		s.Detach()
	})
}

// ductor does not detach from a turn that is already being ended: the earlier reason has priority.
func TestStreamDetachAfterAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		p.obeys = time.Millisecond
		s := NewStream(p, StreamOptions{Agent: "fake"})
		ctx, cancel := context.WithCancelCause(t.Context())
		end, _ := heard(ctx, s, func() { cancel(cli.ErrAborted); cancel(cli.ErrDetached) })
		if end != EndCancelled || len(p.stops) != 1 || !s.Outcome(end).Aborted {
			t.Errorf("ended as %q with %d stops", end, len(p.stops))
		}
		closeStream(t, s)
	})
}

func TestStreamClockTellsPastTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Add(-time.Hour)
		p, past := adopt("a\nbb\nccc\n", 0)
		p.when = func(offset int64) time.Time {
			if offset >= past.Until {
				return time.Time{}
			}
			return began.Add(time.Duration(offset) * time.Second)
		}
		s := NewStream(p, StreamOptions{Agent: "fake", Past: past})
		out := NewEmitter("fake", time.Now, func(cli.Event) {})
		var said []time.Duration
		begin := func() { said = append(said, out.Now().Sub(began)); go p.print("now", "end") }
		s.Turn(t.Context(), Loop[[]byte]{Out: out, Begin: begin, Handle: func(l []byte) bool {
			said = append(said, out.Now().Sub(began))
			return string(l) == "end"
		}})
		want := []time.Duration{0, time.Second, 4 * time.Second, 8 * time.Second, time.Hour, time.Hour}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Error(diff)
		}
		closeStream(t, s)
	})
}

func TestFailureSaysWhoEndedTheProgram(t *testing.T) {
	for _, tc := range []struct {
		exit cli.ExitStatus
		kind cli.FailureKind
		want string
	}{
		{cli.ExitStatus{Code: -15, By: cli.EndedByAge}, cli.TimedOut, "Fake took too long and was stopped: it had been running for longer than is allowed."},
		{cli.ExitStatus{Code: -15, By: cli.EndedByKill}, cli.Killed, "Fake was stopped with ductor kill."},
		{cli.ExitStatus{Code: 0, By: cli.EndedByKill}, cli.Killed, "Fake was stopped with ductor kill."},
		{cli.ExitStatus{Code: -15, By: cli.EndedOrphaned}, cli.TimedOut, "Fake took too long and was stopped: ductor was not running for too long."},
		{cli.ExitStatus{Code: -15, By: cli.EndedByTerminated}, cli.Crashed, "ended from outside"},
		{cli.ExitStatus{Code: cli.CodeUnknown, By: cli.EndedUnseen}, cli.Crashed, "Fake ended unexpectedly (for an unknown reason): the process that watched over it was killed."},
		{cli.ExitStatus{Code: -9, Signal: true, OOM: true}, cli.Crashed, "(signal 9): there was too little memory for it; free some, or give its sandbox more."},
		{cli.ExitStatus{Code: cli.CodeUnknown, By: cli.EndedUnseen, OOM: true}, cli.Crashed, "Fake ended unexpectedly (for an unknown reason): there was too little memory for it; free some, or give its sandbox more."},
		{cli.ExitStatus{Code: 1}, cli.Crashed, "(exit code 1): last words."},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newFakeProcess()
			p.stderr = "last words"
			s := NewStream(p, StreamOptions{Agent: "fake"})
			end := s.Turn(t.Context(), Loop[[]byte]{Begin: func() { s.Garbage([]byte("half a li")); p.die(tc.exit) }})
			f := s.Failure()
			if end != EndExit || f.Kind != tc.kind || !strings.Contains(f.Error(), tc.want) || f.Code != tc.exit.Code {
				t.Errorf("%+v: %q, %+v", tc.exit, f.Error(), *f)
			}
			closeStream(t, s)
		})
	}
}

// Law: however a run is divided among lives of ductor, each starting at the mark, an adopted turn gets every line of
// the run in order, and the end of its past.
func TestStreamAdoptionLaw(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		for i := range rapid.IntRange(0, 30).Draw(rt, "lines") {
			line := strings.Repeat(string(rune('a'+i%26)), rapid.SampledFrom([]int{1, 5, 64<<10 - 1, 64 << 10, 80_000}).Draw(rt, "length"))
			text.WriteString(line + "\n")
		}
		text.WriteString("end\n")
		run := text.String()
		points := rapid.SliceOfN(rapid.IntRange(0, len(run)), 0, 8).Draw(rt, "when ductor comes and goes")
		slices.Sort(points)
		// Each life has two points; the last one sees the end
		if points = append(points, len(run)); len(points)%2 == 1 {
			points = append([]int{0}, points...)
		}
		piece := rapid.IntRange(1, 30_000).Draw(rt, "piece")
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			for life := range slices.Chunk(points, 2) {
				if wrong == "" {
					wrong = playLife(t, run, life[0], life[1], piece)
				}
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// playLife is one ductor that finds the run up to came and leaves when it has printed up to went. It returns the errors
// in the lines of its turn.
func playLife(t *testing.T, run string, came, went, piece int) string {
	p, past := adopt(run[:came], 0)
	p.piece = piece
	s := NewStream(p, StreamOptions{Agent: "fake", Past: past})
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var says sync.WaitGroup
	end, got := heard(ctx, s, func() {
		says.Go(func() {
			_, _ = io.WriteString(p.outW, run[came:went])
			time.Sleep(time.Second)
			cancel(cli.ErrDetached)
		})
	})
	said := strings.SplitAfter(run[:went], "\n")
	said = said[:len(said)-1] // an incomplete line
	told := slices.Insert(said, strings.Count(run[:came], "\n"), "|\n")
	want := strings.ReplaceAll(strings.TrimSuffix(strings.Join(told, ""), "\n"), "\n", " ")
	wantEnd := EndDetached
	if went == len(run) {
		wantEnd = EndTurn
		closeStream(t, s)
	}
	says.Wait()
	if got != want || end != wantEnd {
		return fmt.Sprintf("came at %d, went at %d of %d: heard %d bytes and ended as %q, want %d and %q", came, went, len(run), len(got), end, len(want), wantEnd)
	}
	return ""
}
