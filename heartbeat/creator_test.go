package heartbeat_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/heartbeat"
	"ductor/lang"
	"ductor/orchestrator"
)

// A job whose creator may have no jobs any more is paused when it is due, and the chat reads the reason once.
// Another user can resume it, and becomes its creator.
func TestAJobOfARemovedUserIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		removed := orchestrator.PersonID(0)
		var paused []orchestrator.AuditEntry
		h := newRig(t, day, func(o *heartbeat.Options) {
			o.MayRun = func(j orchestrator.Job) bool { return j.Person != removed }
			o.Audit = func(_ context.Context, all ...orchestrator.AuditEntry) error {
				paused = append(paused, all...)
				return nil
			}
		})
		id := h.add(t, "0 * * * *").Job.ID
		due := func() orchestrator.JobStatus {
			t.Helper()
			h.moveClock(time.Hour)
			for range 2 {
				h.Tick(ctx)
			}
			st, err := h.Get(ctx, id, here)
			if err != nil {
				t.Fatal(err)
			}
			return st
		}
		if due(); len(h.runner.times()) != 1 {
			t.Fatal("it did not run before its creator was removed")
		}
		removed = 9
		shown := len(h.chat.shown())
		for range 3 {
			if st := due(); !st.Job.Paused || len(h.runner.times()) != 1 {
				t.Errorf("it ran %d times, and is %+v", len(h.runner.times()), st.Job)
			}
		}
		note := "look\n⚠️ Paused: the user who made it"
		if all := h.chat.shown()[shown:]; len(all) != 1 || !strings.Contains(all[0].Note, note) {
			t.Errorf("the chat reads %+v", all)
		}
		if len(paused) != 1 || paused[0].Tool != "paused" || paused[0].By != 0 {
			t.Errorf("the audit has %+v", paused)
		}
		bad := (*orchestrator.BadJob)(nil)
		owner := orchestrator.Press{Conversation: here, Person: 1}
		_, err := h.RunJob(ctx, id, owner, "press 1")
		if why := (lang.Printer{}).Text("job.creator-gone"); !errors.As(err, &bad) || bad.Why != why {
			t.Errorf("run now: %v", err)
		}
		if st, err := h.ResumeJob(ctx, id, owner); err != nil || st.Job.Person != 1 || st.Job.Paused {
			t.Errorf("resumed: %+v, %v", st.Job, err)
		}
		if due(); len(h.runner.times()) != 2 || h.runner.asked[1].Prompt.Person != 1 {
			t.Errorf("resumed, it ran %d times in all", len(h.runner.times()))
		}
		if _, err := h.ResumeJob(ctx, id, orchestrator.Press{Conversation: here, Person: 2}); err != nil {
			t.Error(err)
		}
		if st := due(); st.Job.Person != 1 {
			t.Errorf("user %d took over a job whose creator may have it", st.Job.Person)
		}
	})
}

// A job with one time whose creator may have no jobs any more belongs to the user who resumes it, also after its time.
// Then it is finished: it runs only if the user starts it.
func TestAOneTimeJobOfARemovedUserCanBeResumed(t *testing.T) {
	for name, test := range map[string]struct {
		during func(ctx context.Context, h *rig, id orchestrator.JobID, remove func()) // from an hour before its time
		runs   int
	}{
		"refused at its time": {func(_ context.Context, _ *rig, _ orchestrator.JobID, remove func()) { remove() }, 0},
		"paused at its time": {func(ctx context.Context, h *rig, id orchestrator.JobID, remove func()) {
			remove()
			if _, err := h.Pause(ctx, id, here); err != nil {
				t.Error(err)
			}
		}, 0},
		"refused after it ran": {func(ctx context.Context, h *rig, _ orchestrator.JobID, remove func()) {
			h.moveClock(time.Hour)
			h.Tick(ctx)
			remove()
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, removed, bad := t.Context(), orchestrator.PersonID(0), (*orchestrator.BadJob)(nil)
				h := newRig(t, day, func(o *heartbeat.Options) {
					o.MayRun = func(j orchestrator.Job) bool { return j.Person != removed }
				})
				id := h.add(t, "at "+day.Add(time.Hour).Format(time.RFC3339)).Job.ID
				test.during(ctx, h, id, func() { removed = 9 })
				h.moveClock(time.Hour)
				h.Tick(ctx)
				owner := orchestrator.Press{Conversation: here, Person: 1}
				if _, err := h.RunJob(ctx, id, owner, "press 1"); !errors.As(err, &bad) {
					t.Errorf("run now: %v", err)
				}
				st, err := h.ResumeJob(ctx, id, owner)
				if err != nil || st.Job.Person != 1 || !st.Finished() {
					t.Errorf("resumed: %+v, %v", st, err)
				}
				if h.Tick(ctx); len(h.runner.times()) != test.runs {
					t.Errorf("it ran %d times, want %d", len(h.runner.times()), test.runs)
				}
				if _, err := h.RunJob(ctx, id, owner, "press 2"); err != nil {
					t.Errorf("run now by its new creator: %v", err)
				}
				if h.Tick(ctx); len(h.runner.times()) != test.runs+1 {
					t.Errorf("run now, it ran %d times, want %d", len(h.runner.times()), test.runs+1)
				}
			})
		})
	}
}
