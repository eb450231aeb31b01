package heartbeat_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

// TestRetries retries a failed run after pauses that double, as separate turns, and reports only the end. It does not
// retry a run that a user ended or a crash interrupted.
func TestRetries(t *testing.T) {
	for state, want := range map[orchestrator.TurnState][]time.Duration{
		orchestrator.TurnFailed:      {0, time.Minute, 3 * time.Minute, 7 * time.Minute},
		orchestrator.TurnInterrupted: {0},
		orchestrator.TurnAborted:     {0},
	} {
		t.Run(string(state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newRig(t, day)
				h.runner.answer = func(orchestrator.Order) orchestrator.Outcome {
					return orchestrator.Outcome{State: state, Failure: "It broke.", CostUSD: 1}
				}
				st := h.add(t, "0 1 * * *", func(j *orchestrator.Job) { j.Retries = 3 })
				h.start(t)
				time.Sleep(3 * time.Hour)
				h.stop()
				var got []time.Duration
				for _, at := range h.runner.times() {
					got = append(got, at.Sub(day.Add(time.Hour)))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if st = h.get(t, st.Job.ID); st.Runs != 1 || st.CostUSD != float64(len(want)) {
					t.Errorf("the job counts %d runs for %v", st.Runs, st.CostUSD)
				}
				told := 1
				if state == orchestrator.TurnAborted {
					told = 0
				}
				if shown := h.chat.shown(); len(shown) != told {
					t.Errorf("the chat was told %d times", len(shown))
				} else if told == 1 && (shown[0].Silent || shown[0].Run.Result.Reason != "It broke.") {
					t.Errorf("the chat was told %+v", shown[0])
				}
			})
		})
	}
}

// TestAnUnchangedResultIsSilent: a repeated answer is silent; a different one, a failure, and the answer after a
// failure are not.
func TestAnUnchangedResultIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		answers := []string{"all green", "all  green\n", "red", "!", "red", "OK", "red"}
		h.runner.answer = func(orchestrator.Order) orchestrator.Outcome {
			a := answers[0]
			answers = answers[1:]
			if a == "!" {
				return orchestrator.Outcome{State: orchestrator.TurnFailed, Failure: "It broke."}
			}
			return orchestrator.Outcome{State: orchestrator.TurnDone, Text: a}
		}
		h.add(t, "every 1h", func(j *orchestrator.Job) { j.OKWord = "ok" })
		h.start(t)
		time.Sleep(7*time.Hour + time.Minute)
		h.stop()
		var got []string
		for _, r := range h.chat.shown() {
			got = append(got, fmt.Sprintf("%s%s silent=%v", r.Run.Result.Text, r.Run.Result.Reason, r.Silent))
		}
		want := []string{"all green silent=false", "all  green\n silent=true", "red silent=false",
			"It broke. silent=false",
			"red silent=false", "red silent=true"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAFailedReportIsRetried. ErrLater is not logged as a failure.
func TestAFailedReportIsRetried(t *testing.T) {
	for trouble, want := range map[error]bool{errors.New("the disk is full"): true,
		fmt.Errorf("still: %w", heartbeat.ErrLater): false} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			h := newRig(t, day, func(o *heartbeat.Options) {
				o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
			})
			h.chat.fail = trouble
			h.add(t, "0 1 * * *")
			h.start(t)
			time.Sleep(2 * time.Hour)
			h.chat.mu.Lock()
			h.chat.fail = nil
			h.chat.mu.Unlock()
			time.Sleep(time.Minute)
			h.stop()
			if len(h.chat.shown()) != 1 {
				t.Errorf("%v: the chat was told %d times", trouble, len(h.chat.shown()))
			}
			if got := log.Len() > 0; got != want {
				t.Errorf("%v: the log says %q", trouble, log.String())
			}
		})
	}
}

// TestTheNextRunDoesNotWaitForTheChat: a chat that is slow to show a result delays no other run.
func TestTheNextRunDoesNotWaitForTheChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		h.runner.hang, h.chat.fail = true, heartbeat.ErrLater
		st := h.add(t, "0 1 * * *")
		h.start(t)
		called := orchestrator.JobRun{
			ID: "next", Job: st.Job.ID, Cause: orchestrator.CauseHook, Due: day, StandsFor: 1, Prompt: "look",
			Attempt: 1, State: orchestrator.RunWaiting,
		}
		_, err := h.store.RecordRuns(t.Context(), st.Job.ID, []orchestrator.JobRun{called}, st.Next, st.Planned)
		if err == nil {
			_, err = h.RunNow(t.Context(), st.Job.ID, here, "press")
		}
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.runner.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine"})
		h.Poke()
		synctest.Wait()
		if got := len(h.runner.times()); got != 2 {
			t.Errorf("%d turns were asked for when the first had ended", got)
		}
		h.runner.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine"})
		h.stop()
	})
}

// TestReportOfARun: which turn shows the result, the order's texts, and the note below.
func TestReportOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		var fails atomic.Bool
		h.runner.answer = func(o orchestrator.Order) orchestrator.Outcome {
			if fails.Load() && o.Wants.Title == "⏰ CI" {
				return orchestrator.Outcome{State: orchestrator.TurnFailed, Failure: "It broke."}
			}
			return orchestrator.Outcome{State: orchestrator.TurnDone, Text: "green"}
		}
		st := h.add(t, "every 1h", func(j *orchestrator.Job) { j.Name, j.Retries, j.OKWord = "CI", 1, "ok" })
		h.start(t)
		time.Sleep(3*time.Hour + time.Minute)
		if _, err := h.RunNow(t.Context(), st.Job.ID, here, "press"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		fails.Store(true)
		time.Sleep(time.Hour)
		fails.Store(false)
		time.Sleep(time.Minute)
		h.moveClock(3 * time.Hour)
		time.Sleep(time.Minute)
		h.stop()
		green := orchestrator.Digest("green")
		var got []string
		for _, o := range h.runner.asked {
			got = append(got, fmt.Sprintf("%s known=%v word=%q then=%q", o.Wants.Title, o.Wants.Known == green,
				o.Wants.Silence, o.Wants.Card.Then))
		}
		const then = "Next try in 1 min: 2 of 2."
		want := []string{
			`⏰ CI known=false word="ok" then="` + then + `"`,
			`⏰ CI known=true word="ok" then="` + then + `"`,
			`⏰ CI known=true word="ok" then="` + then + `"`,
			`⏰ CI known=false word="" then="` + then + `"`, // a user waits for it
			`⏰ CI known=true word="ok" then="` + then + `"`,
			`⏰ CI known=true word="ok" then="` + then + `"`,
			`⏰ CI · try 2 of 2 known=false word="ok" then=""`,
			`⏰ CI · makes up for 3 missed runs known=true word="ok" then="` + then + `"`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		first, byHand, second := h.runner.asked[0].Turn, h.runner.asked[3].Turn, h.runner.asked[6].Turn
		got = nil
		for _, r := range h.chat.shown() {
			shown := map[cli.TurnID]string{first: "first", byHand: "by hand", second: "second try"}[r.Result.Shown]
			got = append(got, fmt.Sprintf("silent=%v shown=%s same=%d %s", r.Silent, shown, r.Result.Same, r.Note))
		}
		want = []string{
			"silent=false shown=first same=0 ",
			"silent=true shown=first same=1 🔁 Same result as on Thu 1 Jan 02:00",
			"silent=true shown=first same=2 🔁 Same result as on Thu 1 Jan 03:00, 2 times by now",
			"silent=false shown=by hand same=0 ",
			"silent=true shown=by hand same=1 🔁 Same result as on Thu 1 Jan 04:00",
			"silent=false shown=second try same=0 ",
			"silent=true shown=second try same=1 🔁 Same result as on Thu 1 Jan 08:02",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestUnchangedNoteNeedsTheSameAnswer: while the chat is slow, the answer changes.
func TestUnchangedNoteNeedsTheSameAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		answers := []string{"green", "green", "red"}
		h.runner.answer = func(orchestrator.Order) orchestrator.Outcome {
			a := answers[0]
			answers = answers[1:]
			return orchestrator.Outcome{State: orchestrator.TurnDone, Text: a}
		}
		h.add(t, "every 1h")
		fail := func(err error) {
			h.chat.mu.Lock()
			defer h.chat.mu.Unlock()
			h.chat.fail = err
		}
		h.start(t)
		time.Sleep(time.Hour + time.Minute)
		fail(heartbeat.ErrLater)
		time.Sleep(2*time.Hour + 7*time.Second) // never in the middle of a scan
		fail(nil)
		time.Sleep(time.Minute)
		h.stop()
		var got []string
		for _, r := range h.chat.shown() {
			got = append(got, fmt.Sprintf("%s silent=%v note=%q", r.Run.Result.Text, r.Silent, r.Note))
		}
		want := []string{`green silent=false note=""`, `green silent=false note=""`, `red silent=false note=""`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestDeletedResultIsShownAgain: a user deletes the session with the result of a job, while the next turn of the job is
// running. That turn is still silent if its answer is the same. The turn after it shows the answer.
func TestDeletedResultIsShownAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		id := h.add(t, "every 1h").Job.ID
		h.start(t)
		time.Sleep(time.Hour + time.Minute)
		h.runner.set(func() { h.runner.hang = true })
		time.Sleep(time.Hour)
		if err := h.store.do("session", func() error {
			h.store.job(id).JobResult = orchestrator.JobResult{} // as the store does
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		h.runner.set(func() { h.runner.hang = false })
		h.runner.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine"})
		time.Sleep(2 * time.Hour)
		h.stop()
		var got []string
		for i, o := range h.runner.asked {
			shown := h.chat.shown()[i]
			got = append(got, fmt.Sprintf("known=%v silent=%v own=%v same=%d", o.Wants.Known != "", shown.Silent,
				shown.Result.Shown == o.Turn, shown.Result.Same))
		}
		want := []string{
			"known=false silent=false own=true same=0",
			"known=true silent=false own=false same=1",
			"known=false silent=false own=true same=0",
			"known=true silent=true own=false same=1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
