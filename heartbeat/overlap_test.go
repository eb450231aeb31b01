package heartbeat_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ductor/heartbeat"
	"ductor/lang"
	"ductor/orchestrator"
)

// TestAnOverlap: a run that is due before the previous one has ended is skipped or waits, according to the job's
// policy.
func TestAnOverlap(t *testing.T) {
	for policy, want := range map[string]int{orchestrator.OverlapSkip: 2, orchestrator.OverlapQueue: 4} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newRig(t, day)
				st := h.add(t, "every 10m", func(j *orchestrator.Job) { j.Overlap = policy })
				h.runner.set(func() { h.runner.hang = true })
				h.start(t)
				time.Sleep(35 * time.Minute) // due at 10, 20 and 30
				if got := len(h.runner.times()); got != 1 {
					t.Errorf("%d runs at a time", got)
				}
				h.runner.set(func() { h.runner.hang = false })
				h.runner.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine"})
				time.Sleep(10 * time.Minute)
				h.stop()
				if got := len(h.runner.times()); got != want {
					t.Errorf("it ran %d times, want %d", got, want)
				}
				if got := h.get(t, st.Job.ID); got.Open != 0 {
					t.Errorf("%d runs are open", got.Open)
				}
			})
		})
	}
}

func TestAQueueOfOverlapsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		st := h.add(t, "every 1m", func(j *orchestrator.Job) { j.Overlap = orchestrator.OverlapQueue })
		h.runner.set(func() { h.runner.hang = true })
		h.start(t)
		time.Sleep(2 * time.Hour)
		h.stop()
		if got := h.get(t, st.Job.ID); got.Open != orchestrator.MostQueuedRuns {
			t.Errorf("%d runs are open, want %d", got.Open, orchestrator.MostQueuedRuns)
		}
	})
}

// TestABusyConversationQueues: a run waits for a full queue as long as necessary, and a rejected job fails with the
// reason.
func TestABusyConversationQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		h.runner.full = true
		st := h.add(t, "0 1 * * *")
		h.start(t)
		time.Sleep(5 * time.Hour)
		if got := h.get(t, st.Job.ID); got.Open != 1 || got.Last != nil {
			t.Errorf("it stands at %+v", got)
		}
		h.runner.set(func() { h.runner.full = false })
		time.Sleep(time.Minute)
		if got := h.get(t, st.Job.ID); got.Open != 0 || got.Last == nil || got.Last.State != orchestrator.RunDone {
			t.Errorf("it stands at %+v", got)
		}
		h.runner.set(func() {
			h.runner.refuse = fmt.Errorf("Docker is wanted and not there: %w",
				orchestrator.ErrBadChoice)
		})
		time.Sleep(24 * time.Hour)
		h.stop()
		if got := h.get(t, st.Job.ID); got.Last.State != orchestrator.RunFailed ||
			got.Last.Result.Explain(lang.Printer{}) != "It did not run. Docker is wanted and not there: "+
				orchestrator.ErrBadChoice.Error() {
			t.Errorf("it ended as %+v", got.Last)
		}
		if shown := h.chat.shown(); len(shown) != 2 || shown[1].Silent {
			t.Errorf("the chat was told %+v", shown)
		}
	})
}

// TestProactivePromptWaits: a proactive prompt waits while a turn uses its session, and the chat does not show its OK
// word.
func TestProactivePromptWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		h.runner.busy = true
		h.runner.answer = func(orchestrator.Order) orchestrator.Outcome {
			return orchestrator.Outcome{State: orchestrator.TurnDone, Text: " **HEARTBEAT_OK**. "}
		}
		job := heartbeat.Proactive(orchestrator.Job{Name: "watch", Conversation: here, Prompt: "Anything?",
			JobTurn: orchestrator.JobTurn{Session: orchestrator.SharedSession, OKWord: "HEARTBEAT_OK"}}, time.Hour)
		if err := h.Sync(t.Context(), []orchestrator.Job{job}); err != nil {
			t.Fatal(err)
		}
		h.start(t)
		time.Sleep(3*time.Hour + time.Minute)
		if n := len(h.runner.times()); n != 0 {
			t.Errorf("it ran %d times beside a turn", n)
		}
		h.runner.set(func() { h.runner.busy = false })
		time.Sleep(time.Hour)
		h.stop()
		if n := len(h.runner.times()); n != 2 {
			t.Errorf("it ran %d times: once for the hours it waited, once after", n)
		}
		if len(h.chat.shown()) != 0 {
			t.Errorf("the chat shows the OK word: %+v", h.chat.shown())
		}
	})
}

// TestHeldDeliveryDelaysNoManualRun: a manual run in quiet hours runs even after a delivery that waits for their end.
func TestHeldDeliveryDelaysNoManualRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day) // midnight
		job := orchestrator.Job{
			Name: "build", Kind: orchestrator.JobHook, Conversation: here,
			JobTiming: orchestrator.JobTiming{
				Overlap:    orchestrator.OverlapQueue,
				QuietHours: orchestrator.QuietHours{Hours: orchestrator.Hours{QuietFrom: "22:00", QuietTo: "07:00"}},
			},
		}
		if err := h.Sync(t.Context(), []orchestrator.Job{job}); err != nil {
			t.Fatal(err)
		}
		id := orchestrator.ConfiguredJob(orchestrator.JobHook, "build")
		called := orchestrator.JobRun{
			ID: "delivery", Job: id, Cause: orchestrator.CauseHook, Due: day, StandsFor: 1, Prompt: "it broke",
			Attempt: 1, State: orchestrator.RunWaiting,
		}
		if _, err := h.store.RecordRuns(t.Context(), id, []orchestrator.JobRun{called}, time.Time{}, day); err != nil {
			t.Fatal(err)
		}
		h.start(t)
		time.Sleep(time.Hour)
		if _, err := h.RunNow(t.Context(), id, here, "press"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := h.runner.times(); len(got) != 1 || got[0].Sub(day) > time.Hour+time.Minute {
			t.Errorf("in quiet hours it ran at %v", got)
		}
		time.Sleep(7 * time.Hour)
		h.stop()
		if got := h.runner.times(); len(got) != 2 || got[1].Before(day.Add(7*time.Hour)) {
			t.Errorf("it ran at %v", got)
		}
	})
}
