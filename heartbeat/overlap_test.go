package heartbeat_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ductor/heartbeat"
	"ductor/orchestrator"
)

// TestAnOverlap: what is due while the run before is not over is skipped or waits, as the job wants.
func TestAnOverlap(t *testing.T) {
	for policy, want := range map[heartbeat.Overlap]int{heartbeat.OverlapSkip: 2, heartbeat.OverlapQueue: 4} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, day)
				st := h.add(t, "every 10m", func(j *heartbeat.Job) { j.Overlap = policy })
				h.desk.set(func() { h.desk.hang = true })
				h.start(t)
				time.Sleep(35 * time.Minute) // due at 10, 20 and 30
				if got := len(h.desk.times()); got != 1 {
					t.Errorf("%d runs at a time", got)
				}
				h.desk.set(func() { h.desk.hang = false })
				h.desk.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine"})
				time.Sleep(10 * time.Minute)
				h.stop()
				if got := len(h.desk.times()); got != want {
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
		h := build(t, day)
		st := h.add(t, "every 1m", func(j *heartbeat.Job) { j.Overlap = heartbeat.OverlapQueue })
		h.desk.set(func() { h.desk.hang = true })
		h.start(t)
		time.Sleep(2 * time.Hour)
		h.stop()
		if got := h.get(t, st.Job.ID); got.Open != heartbeat.MostQueued {
			t.Errorf("%d runs are open, want %d", got.Open, heartbeat.MostQueued)
		}
	})
}

// TestABusyConversationQueues: a full queue is waited for, however long, and a job that is refused fails with the reason.
func TestABusyConversationQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		h.desk.full = true
		st := h.add(t, "0 1 * * *")
		h.start(t)
		time.Sleep(5 * time.Hour)
		if got := h.get(t, st.Job.ID); got.Open != 1 || got.Last != nil {
			t.Errorf("it stands at %+v", got)
		}
		h.desk.set(func() { h.desk.full = false })
		time.Sleep(time.Minute)
		if got := h.get(t, st.Job.ID); got.Open != 0 || got.Last == nil || got.Last.State != heartbeat.RunDone {
			t.Errorf("it stands at %+v", got)
		}
		h.desk.set(func() { h.desk.refuse = fmt.Errorf("Docker is wanted and not there: %w", heartbeat.ErrRefused) })
		time.Sleep(24 * time.Hour)
		h.stop()
		if got := h.get(t, st.Job.ID); got.Last.State != heartbeat.RunFailed || got.Last.Reason != "It did not run. Docker is wanted and not there" {
			t.Errorf("it ended as %+v", got.Last)
		}
		if shown := h.chat.shown(); len(shown) != 2 || shown[1].Silent {
			t.Errorf("the chat was told %+v", shown)
		}
	})
}

// TestAPulseNeverComesBetween: a proactive prompt waits while a turn uses its session, and its silent word is shown
// to nobody.
func TestAPulseNeverComesBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day)
		h.desk.busy = true
		h.desk.answer = func(heartbeat.Order) orchestrator.Outcome {
			return orchestrator.Outcome{State: orchestrator.TurnDone, Text: " **HEARTBEAT_OK**. "}
		}
		pulse := heartbeat.Pulse{Name: "watch", Conversation: here, Every: time.Hour, Prompt: "Anything?", Session: heartbeat.SharedSession}
		if err := h.Sync(t.Context(), []heartbeat.Job{pulse.Job()}); err != nil {
			t.Fatal(err)
		}
		h.start(t)
		time.Sleep(3*time.Hour + time.Minute)
		if n := len(h.desk.times()); n != 0 {
			t.Errorf("it came between %d times", n)
		}
		h.desk.set(func() { h.desk.busy = false })
		time.Sleep(time.Hour)
		h.stop()
		if n := len(h.desk.times()); n != 2 {
			t.Errorf("it ran %d times: once for the hours it waited, once after", n)
		}
		if len(h.chat.shown()) != 0 {
			t.Errorf("the silent word was shown: %+v", h.chat.shown())
		}
	})
}

// TestADeliveryThatIsHeldHoldsBackNobody: what a person wants in quiet hours runs, also where a webhook was called in
// them before.
func TestADeliveryThatIsHeldHoldsBackNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, day) // midnight
		job := heartbeat.Job{Name: "build", Kind: heartbeat.KindHook, Conversation: here, Enabled: true, Overlap: heartbeat.OverlapQueue,
			Quiet: heartbeat.Quiet{From: "22:00", To: "07:00"}}
		if err := h.Sync(t.Context(), []heartbeat.Job{job}); err != nil {
			t.Fatal(err)
		}
		id := heartbeat.ConfigID(heartbeat.KindHook, "build")
		called := heartbeat.Run{ID: "delivery", Job: id, Cause: heartbeat.CauseHook, Due: day, StandsFor: 1, Prompt: "it broke", Attempt: 1,
			State: heartbeat.RunWaiting}
		if _, err := h.store.RecordRuns(t.Context(), id, []heartbeat.Run{called}, time.Time{}, day); err != nil {
			t.Fatal(err)
		}
		h.start(t)
		time.Sleep(time.Hour)
		if _, err := h.RunNow(t.Context(), id, here, "press"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := h.desk.times(); len(got) != 1 || got[0].Sub(day) > time.Hour+time.Minute {
			t.Errorf("in quiet hours it ran at %v", got)
		}
		time.Sleep(7 * time.Hour)
		h.stop()
		if got := h.desk.times(); len(got) != 2 || got[1].Before(day.Add(7*time.Hour)) {
			t.Errorf("it ran at %v", got)
		}
	})
}
