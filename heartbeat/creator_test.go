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
