package turn

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

// said is an item of a shared process.
type said struct {
	text string
	end  int64
	Change
}

// sharedRig runs one turn of a shared process: the test sends items, and a kill takes a second.
type sharedRig struct {
	in    *Queue[said]
	gone  chan struct{}
	kills []time.Duration
	heard []string
	turn  *Turn[said]
}

func newSharedRig(loop Loop[said]) *sharedRig {
	rig := &sharedRig{in: NewQueue[said](0), gone: make(chan struct{})}
	loop.Source.In, loop.Source.Gone = rig.in, rig.gone
	loop.Source.Limits.Grace = 4 * time.Second
	loop.Source.Stop = func(_ context.Context, grace time.Duration) error {
		rig.kills = append(rig.kills, grace)
		time.Sleep(time.Second)
		rig.say("last words")
		return errors.New("not ended")
	}
	loop.Source.End = func(s said) int64 { return s.end }
	loop.Handle = func(s said) bool {
		switch {
		case s.Any():
			rig.turn.Changed(s.Change)
		case s.text == "accepted":
			rig.turn.Accepted()
		default:
			rig.heard = append(rig.heard, s.text)
		}
		return s.text == "end"
	}
	rig.turn = New(loop)
	return rig
}

func (rig *sharedRig) say(texts ...string) {
	for _, text := range texts {
		rig.in.Put(said{text: text}, len(text))
	}
}

func TestATurnIsInterruptedOnceItIsAccepted(t *testing.T) {
	for name, tc := range map[string]struct {
		accepts, took time.Duration
		heard         string
		kills         int
	}{
		"accepted in time": {time.Second, time.Second, "1 end", 0},
		"never accepted":   {time.Hour, 3 * time.Second, "1 last words", 1}, // half of the grace, and the kill
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				var rig *sharedRig
				asked := 0
				rig = newSharedRig(Loop[said]{
					Source: Source[said]{Limits: Limits{Start: time.Minute}},
					Begin: func() {
						rig.say("1")
						cancel(cli.ErrAborted)
						time.AfterFunc(tc.accepts, func() { rig.say("accepted") })
					},
					Interrupt: func() error { asked++; rig.say("end"); return nil },
				})
				began := time.Now()
				end := rig.turn.Run(ctx)
				if took := time.Since(began); end != EndCancelled || took != tc.took || asked != 1-tc.kills || len(rig.kills) != tc.kills {
					t.Errorf("ended as %q after %v, asked %d times, kills %v", end, took, asked, rig.kills)
				}
				if got := strings.Join(rig.heard, " "); got != tc.heard || rig.turn.Killed() != (tc.kills > 0) || (rig.turn.StopErr() != nil) != (tc.kills > 0) {
					t.Errorf("heard %q, %v", got, rig.turn.StopErr())
				}
				if r := rig.turn.Outcome(end, "fake", nil); !r.Aborted {
					t.Errorf("outcome %+v", r)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

func TestATurnThatIsNotAcceptedStallsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newSharedRig(Loop[said]{Source: Source[said]{Limits: Limits{Start: time.Minute, Stall: time.Hour}}})
		began := time.Now()
		if end := rig.turn.Run(t.Context()); end != EndStalled || time.Since(began) != time.Minute+2*time.Second+time.Second {
			t.Errorf("ended as %q after %v", end, time.Since(began))
		}
	})
}

// While the agent waits for the user, silence does not count; it counts again from the answer on.
func TestATurnWaitsForTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits atomic.Bool
		var rig *sharedRig
		rig = newSharedRig(Loop[said]{
			Source:  Source[said]{Limits: Limits{Stall: time.Minute}},
			Waiting: waits.Load,
			Begin: func() {
				waits.Store(true)
				rig.say("may I?")
				time.AfterFunc(10*time.Minute+30*time.Second, func() { waits.Store(false); rig.in.Wake() })
			},
			Interrupt: func() error { rig.say("end"); return nil },
		})
		began := time.Now()
		if end := rig.turn.Run(t.Context()); end != EndStalled || time.Since(began) != 11*time.Minute+30*time.Second {
			t.Errorf("ended as %q after %v", end, time.Since(began))
		}
	})
}

func TestATurnGivesUpWhatCannotSucceed(t *testing.T) {
	for _, tc := range []struct {
		say  string
		want End
	}{{"no such model", EndHopeless}, {strings.Repeat("x", QueueLimit), EndFlooded}} {
		synctest.Test(t, func(t *testing.T) {
			var rig *sharedRig
			rig = newSharedRig(Loop[said]{
				Hopeless:  func() bool { return len(rig.heard) > 0 && rig.heard[0] == "no such model" },
				Begin:     func() { rig.say(tc.say, "more") },
				Interrupt: func() error { rig.say("end"); return nil },
			})
			if end := rig.turn.Run(t.Context()); end != tc.want || rig.heard[len(rig.heard)-1] != "end" {
				t.Errorf("ended as %q after %d items", end, len(rig.heard))
			}
			if r := rig.turn.Outcome(EndFlooded, "fake", nil); r.Err.Kind != cli.BadOutput {
				t.Errorf("outcome %+v", r.Err)
			}
		})
	}
}

// A resumed turn skips the output of earlier turns, and reports the time of the rest.
func TestAResumedTurnTellsPastTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zero := time.Now().Add(-time.Hour)
		var rig *sharedRig
		var at []time.Duration
		var told []string
		out := NewEmitter("fake", time.Now, func(ev cli.Event) {
			if _, ok := ev.(cli.CaughtUp); ok {
				told = append(told, "|")
			}
		})
		now := func() { at = append(at, out.Now().Sub(zero)) }
		rig = newSharedRig(Loop[said]{
			Source: Source[said]{Resumed: &Resumed{
				From: 10, Began: zero.Add(time.Second), When: func(o int64) time.Time { return zero.Add(time.Duration(o) * time.Minute) },
			}},
			Out: out,
			Begin: func() {
				rig.in.Put(said{text: "of another", end: 10}, 1)
				rig.in.Put(said{text: "a", end: 21}, 1)
				rig.in.Put(said{Change: Change{CaughtUp: true}, end: 21}, 1)
				rig.in.Put(said{text: "end", end: 31}, 1)
			},
		})
		handle := rig.turn.loop.Handle
		rig.turn.loop.Handle = func(s said) bool { defer now(); return handle(s) }
		now()
		end := rig.turn.Run(t.Context())
		if got := strings.Join(rig.heard, " "); end != EndTurn || got != "a end" || strings.Join(told, "") != "|" {
			t.Errorf("ended as %q after %q, told %q", end, got, told)
		}
		want := []time.Duration{time.Second, 20 * time.Minute, time.Hour, time.Hour}
		for i := range want {
			if i >= len(at) || at[i] != want[i] {
				t.Fatalf("the times are %v, want %v", at, want)
			}
		}
	})
}

// A shared process that is gone ends the turn after its last item. A process that is left to other sessions ends the
// turn when Stop returns.
func TestATurnEndsWithItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rig *sharedRig
		rig = newSharedRig(Loop[said]{Begin: func() { rig.say("1"); close(rig.gone); rig.say("2") }})
		end := rig.turn.Run(t.Context())
		if got := strings.Join(rig.heard, " "); end != EndExit || got != "1 2" || rig.turn.Killed() {
			t.Errorf("ended as %q after %q", end, got)
		}
		failure := &cli.Failure{Kind: cli.Crashed}
		if r := rig.turn.Outcome(end, "fake", func() *cli.Failure { return failure }); r.Err != failure {
			t.Errorf("outcome %+v", r)
		}
	})
}
