package heartbeat_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ductor/heartbeat"
	"ductor/heartbeat/schedule"
	"ductor/orchestrator"
)

var errCrash = errors.New("killed here")

// A job that cannot be stored on a full disk is logged once, not at each attempt. The next time that the disk is full,
// it is logged again.
func TestAJobThatCannotBeStoredIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		h := newRig(t, friday, func(o *heartbeat.Options) { o.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
		h.add(t, "every 5m")
		full := func(op string) error {
			if op == "record" {
				return orchestrator.ErrDiskFull
			}
			return nil
		}
		for i := range 2 {
			h.store.before = full
			h.start(t)
			time.Sleep(time.Hour)
			h.stop()
			if n := strings.Count(logs.String(), "start due jobs"); n != i+1 {
				t.Errorf("%d lines in the log:\n%s", n, &logs)
			}
			h.store.before = nil
			h.start(t)
			time.Sleep(time.Hour)
			h.stop()
		}
	})
}

// TestNothingTwiceAndNothingLost kills ductor at any step, before or after the step took effect, and lets it sleep for
// any time. Under all policies, each run is submitted at most once, every end is reported, and every time is accounted
// for: by its own run, by the one that stands for it, or by one that says why it was skipped.
func TestNothingTwiceAndNothingLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newRig(nil, day)
		h.wall = day
		st, err := h.Add(context.Background(), orchestrator.Job{
			Conversation: here, Prompt: "look",
			JobTiming: orchestrator.JobTiming{Schedule: rapid.SampledFrom([]string{"0 * * * *", "*/7 * * * *",
				"every 25m", "30 2 * * *"}).Draw(t, "schedule"),
				QuietHours: orchestrator.QuietHours{
					Zone: rapid.SampledFrom([]string{"UTC", "Europe/Paris"}).Draw(t, "zone"),
				},
				Missed: rapid.SampledFrom([]string{orchestrator.MissedSkip, orchestrator.MissedOnce,
					orchestrator.MissedAll}).Draw(t, "missed"),
				Overlap: rapid.SampledFrom([]string{orchestrator.OverlapSkip,
					orchestrator.OverlapQueue}).Draw(t, "overlap")},
			JobTurn: orchestrator.JobTurn{Retries: rapid.IntRange(0, 2).Draw(t, "retries")},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.runner.answer = func(o orchestrator.Order) orchestrator.Outcome {
			if o.Turn[len(o.Turn)-1]%4 == 0 {
				return orchestrator.Outcome{State: orchestrator.TurnFailed, Failure: "It broke.", CostUSD: 1}
			}
			return orchestrator.Outcome{State: orchestrator.TurnDone, Text: string(o.Turn), CostUSD: 1}
		}
		left := 0
		crash := func(string) error {
			if left--; left == 0 {
				return errCrash
			}
			return nil
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			left = rapid.IntRange(0, 25).Draw(t, "crash at")
			after := rapid.Bool().Draw(t, "took effect")
			h.store.before, h.store.after, h.runner.before, h.runner.after = nil, nil, nil, nil
			if after {
				h.store.after, h.runner.after = crash, crash
			} else {
				h.store.before, h.runner.before = crash, crash
			}
			h.runner.hang = rapid.Bool().Draw(t, "hangs")
			h.Tick(context.Background())
			if left <= 0 {
				h.replaceScheduler()
			}
			if !h.runner.hang {
				h.runner.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "late", CostUSD: 1})
			}
			h.wall = h.wall.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "pass")))
		}
		finishAll(h)
		validate(t, h, st)
	})
}

// finishAll ends all runs and starts no new ones.
func finishAll(h *rig) {
	h.store.before, h.store.after, h.runner.before, h.runner.after, h.runner.hang = nil, nil, nil, nil, false
	h.Tick(context.Background())
	for i := range h.store.jobs {
		h.store.jobs[i].Job.Paused = true
	}
	for range 400 {
		h.runner.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "late", CostUSD: 1})
		h.Tick(context.Background())
		h.wall = h.wall.Add(time.Minute)
	}
}

func validate(t *rapid.T, h *rig, st orchestrator.JobStatus) {
	t.Helper()
	loc, err := time.LoadLocation(st.Job.Zone)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := schedule.Parse(st.Job.Schedule, loc, st.Job.Created)
	if err != nil {
		t.Fatal(err)
	}
	now := h.store.jobs[0]
	moments := 0
	for at := plan.Next(day); at.Before(now.Next); at = plan.Next(at) {
		moments++
	}
	stood, asked, cost, told := 0, 0, 0.0, 0
	for _, r := range h.store.order {
		if r.State.Open() || !r.Result.Notified {
			t.Fatalf("a run never came to its end: %+v", *r)
		}
		stood += r.StandsFor
		if r.State != orchestrator.RunSkipped {
			asked += r.Attempt
			cost += r.Result.CostUSD
			told++
		}
	}
	if stood != moments {
		t.Fatalf("%d moments were due, and the runs stand for %d", moments, stood)
	}
	if len(h.runner.asked) != asked || len(h.runner.turns) != asked || cost != float64(asked) ||
		now.Job.ID != st.Job.ID || now.CostUSD != cost {
		t.Fatalf("%d turns were asked for by %d attempts; they cost %v by the runs and %v by the job",
			len(h.runner.asked), asked, cost, now.CostUSD)
	}
	if len(h.chat.reports) != told {
		t.Fatalf("%d runs ended and the chat knows of %d", told, len(h.chat.reports))
	}
}
