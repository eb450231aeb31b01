package heartbeat_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/heartbeat"
	"ductor/orchestrator"
)

var errCrash = errors.New("killed here")

// TestNothingTwiceAndNothingLost kills ductor at any step, before or after it took effect, and has it sleep for any
// time. Whatever the policies: each run is asked for at most once, what ran was told, and every moment is
// accounted for, by the run it had or the one that stands for it or says why it was skipped.
func TestNothingTwiceAndNothingLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := build(nil, day)
		h.wall = day
		st, err := h.Add(context.Background(), heartbeat.Job{
			Conversation: here, Prompt: "look", Schedule: rapid.SampledFrom([]string{"0 * * * *", "*/7 * * * *", "every 25m", "30 2 * * *"}).Draw(t, "schedule"),
			Zone:    rapid.SampledFrom([]string{"UTC", "Europe/Paris"}).Draw(t, "zone"),
			Missed:  rapid.SampledFrom([]heartbeat.Missed{heartbeat.MissedSkip, heartbeat.MissedOnce, heartbeat.MissedAll}).Draw(t, "missed"),
			Overlap: rapid.SampledFrom([]heartbeat.Overlap{heartbeat.OverlapSkip, heartbeat.OverlapQueue}).Draw(t, "overlap"),
			Retries: rapid.IntRange(0, 2).Draw(t, "retries"),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.desk.answer = func(o heartbeat.Order) orchestrator.Outcome {
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
			h.store.hurt, h.store.after, h.desk.hurt, h.desk.after = nil, nil, nil, nil
			if after {
				h.store.after, h.desk.after = crash, crash
			} else {
				h.store.hurt, h.desk.hurt = crash, crash
			}
			h.desk.hang = rapid.Bool().Draw(t, "hangs")
			h.Tick(context.Background())
			if left <= 0 {
				h.renew()
			}
			if !h.desk.hang {
				h.desk.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "late", CostUSD: 1})
			}
			h.wall = h.wall.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "pass")))
		}
		settleDown(h)
		check(t, h, st)
	})
}

// settleDown lets everything come to its end without any new moment.
func settleDown(h *house) {
	h.store.hurt, h.store.after, h.desk.hurt, h.desk.after, h.desk.hang = nil, nil, nil, nil, false
	h.Tick(context.Background())
	for i := range h.store.jobs {
		h.store.jobs[i].Job.Enabled = false
	}
	for range 400 {
		h.desk.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "late", CostUSD: 1})
		h.Tick(context.Background())
		h.wall = h.wall.Add(time.Minute)
	}
}

func check(t *rapid.T, h *house, st heartbeat.Standing) {
	t.Helper()
	loc, err := time.LoadLocation(st.Job.Zone)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := heartbeat.ParseSchedule(st.Job.Schedule, loc, st.Job.Created)
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
		if r.State.Open() || !r.Told {
			t.Fatalf("a run never came to its end: %+v", *r)
		}
		stood += r.StandsFor
		if r.State != heartbeat.RunSkipped {
			asked += r.Attempt
			cost += r.CostUSD
			told++
		}
	}
	if stood != moments {
		t.Fatalf("%d moments were due, and the runs stand for %d", moments, stood)
	}
	if len(h.desk.asked) != asked || len(h.desk.turns) != asked || cost != float64(asked) || now.Job.ID != st.Job.ID || now.CostUSD != cost {
		t.Fatalf("%d turns were asked for by %d attempts; they cost %v by the runs and %v by the job", len(h.desk.asked), asked, cost, now.CostUSD)
	}
	if len(h.chat.reports) != told {
		t.Fatalf("%d runs ended and the chat knows of %d", told, len(h.chat.reports))
	}
}
