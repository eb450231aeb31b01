package heartbeat_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"ductor/heartbeat"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// TestOverTheRealStore runs a job with all settings for a week. Every day the database is reopened, and ductor restarts
// in the middle of each run.
func TestOverTheRealStore(t *testing.T) {
	path, h := filepath.Join(t.TempDir(), "db"), newRig(t, day)
	h.wall = day
	var db *store.DB
	restart := func() {
		t.Helper()
		if db != nil {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if db, err = store.Open(t.Context(), path, store.Options{}); err != nil {
			t.Fatal(err)
		}
		h.replaceScheduler(func(o *heartbeat.Options) { o.Store = db })
	}
	restart()
	job := orchestrator.Job{
		Name: "week", Conversation: here, Person: 9, Prompt: "look",
		JobTiming: orchestrator.JobTiming{Schedule: "0 0,8 * * *", Missed: orchestrator.MissedAll,
			QuietHours: orchestrator.QuietHours{
				Zone: "Asia/Tokyo", Hours: orchestrator.Hours{QuietFrom: "23:00", QuietTo: "05:30"},
			}},
		JobTurn: orchestrator.JobTurn{Retries: 1, OKWord: "ok"},
	}
	id := orchestrator.ConfiguredJob(orchestrator.JobScheduled, "week")
	for d := range 7 {
		h.wall = day.AddDate(0, 0, d)
		for range 24 {
			if err := h.Sync(t.Context(), []orchestrator.Job{job}); err != nil {
				t.Fatal(err)
			}
			h.runner.hang = h.wall.Hour()%2 == 0
			h.Tick(context.Background())
			h.runner.finish(h.runner.outcome(orchestrator.Order{}))
			h.Tick(context.Background())
			h.wall = h.wall.Add(time.Hour)
		}
		restart()
	}
	st, err := h.Get(t.Context(), id, here)
	if err != nil {
		t.Fatal(err)
	}
	// Runs of midnight wait until half past five, and the scheduler reads the clock every hour.
	if st.Runs != 14 || st.CostUSD != 3.5 || st.Open != 0 || len(h.runner.asked) != 14 || len(h.chat.shown()) != 14 {
		t.Errorf("it stands at %+v; %d turns, %d reports", st, len(h.runner.asked), len(h.chat.shown()))
	}
	for _, at := range h.runner.at {
		if hour := at.In(zone(t, "Asia/Tokyo")).Hour(); hour != 6 && hour != 8 {
			t.Errorf("it ran at %s", at)
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// A job of the configuration stays in its group under the group's new ID, although the configuration has the old one.
func TestAConfiguredJobFollowsItsGroup(t *testing.T) {
	h := newRig(t, day)
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.replaceScheduler(func(o *heartbeat.Options) { o.Store = db })
	was, is := orchestrator.ConversationID{Chat: -5}, orchestrator.ConversationID{Chat: -1000000000005}
	job := orchestrator.Job{Name: "ci", Conversation: was, Person: 9, Prompt: "look",
		JobTiming: orchestrator.JobTiming{Schedule: "0 8 * * *", QuietHours: orchestrator.QuietHours{Zone: "UTC"}}}
	id := orchestrator.ConfiguredJob(orchestrator.JobScheduled, job.Name)
	for _, in := range []orchestrator.ConversationID{was, is, is} {
		if err := h.Sync(t.Context(), []orchestrator.Job{job}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Get(t.Context(), id, in); err != nil {
			t.Errorf("the job is not in %v: %v", in, err)
		}
		if err := db.MoveChat(t.Context(), was.Chat, is.Chat); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
