package heartbeat_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

// Two taps on Run now start one run, also if the second one is on a button that was drawn after the first.
func TestTwoTapsStartOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		h.runner.hang = true
		id := h.add(t, "0 1 * * *").Job.ID
		h.start(t)
		defer h.stop()
		press := 0
		tap := func(want error) {
			t.Helper()
			press++
			if _, err := h.RunNow(t.Context(), id, here, fmt.Sprint("press ", press)); !errors.Is(err, want) {
				t.Errorf("tap %d: %v, want %v", press, err, want)
			}
			synctest.Wait()
		}
		tap(nil)
		tap(orchestrator.ErrRepeated)
		time.Sleep(time.Minute) // the first run still works
		tap(orchestrator.ErrRepeated)
		h.runner.hang = false
		h.runner.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine"})
		time.Sleep(time.Minute)
		tap(nil)
		time.Sleep(time.Second)
		tap(orchestrator.ErrRepeated) // the run was short
		if n := len(h.runner.times()); n != 2 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// TestJobActionsOfTheChat performs the actions of the chat's screens.
func TestJobActionsOfTheChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		ctx, there := t.Context(), orchestrator.ConversationID{Chat: 8}
		st := h.add(t, "0 1 * * *")
		id := st.Job.ID
		h.start(t)
		defer h.stop()
		if st.Next != day.Add(time.Hour) || st.Job.Name != "look" || st.Job.Paused {
			t.Errorf("it was added as %+v", st)
		}
		if st, err := h.Pause(ctx, id, here); err != nil || !st.Job.Paused {
			t.Errorf("paused: %+v, %v", st, err)
		}
		time.Sleep(30 * time.Hour)
		for _, want := range []error{nil, orchestrator.ErrRepeated} { // a button press that is delivered twice
			if _, err := h.RunNow(ctx, id, here, "press 7"); !errors.Is(err, want) {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		if n := len(h.runner.times()); n != 1 {
			t.Errorf("paused and run now it ran %d times", n)
		}
		by := orchestrator.Press{Conversation: here}
		if st, err := h.Resume(ctx, id, by); err != nil || st.Next != day.Add(49*time.Hour) {
			t.Errorf("resumed, it is due at %s, %v", st.Next, err)
		}
		if st, err := h.Edit(ctx, id, here, func(j *orchestrator.Job) error {
			j.Schedule, j.Prompt = "0 2 * * *", "see"
			return nil
		}); err != nil || st.Next != day.Add(50*time.Hour) {
			t.Errorf("edited, it is due at %s, %v", st.Next, err)
		}
		if _, err := h.Edit(ctx, id, here,
			func(j *orchestrator.Job) error { j.Schedule = "soon"; return nil }); err == nil {
			t.Error("a schedule that is none was taken")
		}
		for what, err := range map[string]error{
			"pause":  errorOf(h.Pause(ctx, id, there)),
			"run":    errorOf(h.RunNow(ctx, id, there, "x")),
			"edit":   errorOf(h.Edit(ctx, id, there, func(*orchestrator.Job) error { return nil })),
			"look":   errorOf(h.Get(ctx, id, there)),
			"delete": h.Delete(ctx, id, there),
		} {
			if !errors.Is(err, orchestrator.ErrElsewhere) {
				t.Errorf("%s from another chat: %v", what, err)
			}
		}
		time.Sleep(24 * time.Hour)
		if list, err := h.List(ctx, here); err != nil || len(list) != 1 || list[0].Runs != 2 ||
			list[0].Last.Prompt != "see" {
			t.Errorf("the list is %+v, %v", list, err)
		}
		if list, err := h.List(ctx, there); err != nil || len(list) != 0 {
			t.Errorf("another chat sees %+v, %v", list, err)
		}
		if err := errors.Join(h.Delete(ctx, id, here),
			h.Delete(ctx, id, here)); !errors.Is(err, orchestrator.ErrNoJob) {
			t.Errorf("deleted twice: %v", err)
		}
	})
}

func errorOf[T any](_ T, err error) error { return err }

// A button can delete a job at the moment at which it is due, or right after the scheduler listed its run. Then no turn
// starts, and that is no error.
func TestAJobIsDeletedWhenItIsDue(t *testing.T) {
	for _, listed := range []string{"jobs", "open"} { // the last operation before the deletion
		t.Run(listed, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				h := newRig(t, friday, func(o *heartbeat.Options) {
					o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
				})
				j := orchestrator.Job{ID: orchestrator.LaterJob("t"), Conversation: here, Prompt: "look"}
				j.Schedule = "at " + friday.Add(time.Minute).Format(time.DateTime)
				if _, err := h.Add(t.Context(), j); err != nil {
					t.Fatal(err)
				}
				h.moveClock(2 * time.Minute)
				h.store.after = func(op string) error {
					if op == listed {
						h.store.jobs = nil
					}
					return nil
				}
				h.Tick(t.Context())
				if len(h.runner.asked) > 0 || log.Len() > 0 {
					t.Errorf("%d turns, and the log says %s", len(h.runner.asked), log.String())
				}
			})
		})
	}
}

// A button deletes a job while the scheduler submits its turn. The turn runs, and that is no error either.
func TestAJobIsDeletedWhileItsTurnIsSubmitted(t *testing.T) {
	var log bytes.Buffer
	h := newRig(t, friday, func(o *heartbeat.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	st := h.add(t, "every 1m")
	h.runner.before = func(string) error { return h.Delete(t.Context(), st.Job.ID, here) }
	h.moveClock(time.Minute)
	h.Tick(t.Context())
	if len(h.runner.asked) != 1 || log.Len() > 0 {
		t.Errorf("%d turns, and the log says %s", len(h.runner.asked), log.String())
	}
	if open, err := h.store.OpenRuns(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("the open runs are %+v, %v", open, err)
	}
}

// TestConversationsChangeJobsDuringATick: the scheduler waits for a conversation while this conversation adds and
// deletes a job.
func TestConversationsChangeJobsDuringATick(t *testing.T) {
	h := newRig(t, friday)
	busy := &busyConversation{t: t, rig: h}
	h.replaceScheduler(func(o *heartbeat.Options) { o.Runner, o.Notifier = busy, busy })
	job := heartbeat.Proactive(orchestrator.Job{Name: "watch", Conversation: here, Prompt: "Anything?",
		JobTurn: orchestrator.JobTurn{OKWord: "ok"}}, time.Hour)
	if err := h.Sync(t.Context(), []orchestrator.Job{job}); err != nil {
		t.Fatal(err)
	}
	h.moveClock(time.Hour)
	h.Tick(t.Context())
	if busy.calls != 4 || len(h.chat.shown()) != 1 {
		t.Errorf("%d calls and %d reports, want Busy, SubmitOrder, Turn and Report", busy.calls, len(h.chat.shown()))
	}
}

// busyConversation is a Runner and a Notifier. A conversation changes its jobs during each call.
type busyConversation struct {
	t     *testing.T
	rig   *rig
	calls int
}

func (b *busyConversation) changeJobs() {
	b.calls++
	done := make(chan error, 1)
	go func() {
		ctx := context.Background()
		st, err := b.rig.AddJob(ctx, orchestrator.Job{Conversation: here, Prompt: "look",
			JobTiming: orchestrator.JobTiming{Schedule: "@daily"}})
		done <- errors.Join(err, b.rig.DeleteJob(ctx, st.Job.ID, orchestrator.Press{Conversation: here}))
	}()
	select {
	case err := <-done:
		if err != nil {
			b.t.Error(err)
		}
	case <-time.After(time.Minute):
		b.t.Fatal("the conversation waits for the scheduler, which waits for the conversation")
	}
}

func (b *busyConversation) SubmitOrder(ctx context.Context, o orchestrator.Order) error {
	b.changeJobs()
	return b.rig.runner.SubmitOrder(ctx, o)
}

func (b *busyConversation) Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	b.changeJobs()
	return b.rig.runner.Turn(ctx, id)
}

func (b *busyConversation) Busy(ctx context.Context, id orchestrator.ConversationID) (bool, error) {
	b.changeJobs()
	return b.rig.runner.Busy(ctx, id)
}

func (b *busyConversation) Report(ctx context.Context, r heartbeat.Report) error {
	b.changeJobs()
	return b.rig.chat.Report(ctx, r)
}

// TestJobsOfTheConfiguration: they are added and removed with the configuration, keep their missed runs, and cannot be
// changed in chats.
func TestJobsOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		ctx := t.Context()
		job := func(name, schedule string) orchestrator.Job {
			timing := orchestrator.JobTiming{Schedule: schedule}
			return orchestrator.Job{Name: name, Conversation: here, Prompt: name, JobTiming: timing}
		}
		sync := func(jobs ...orchestrator.Job) {
			t.Helper()
			if err := h.Sync(ctx, jobs); err != nil {
				t.Fatal(err)
			}
		}
		names := func() (names []string) {
			for _, st := range h.store.jobs {
				names = append(names, st.Job.Name)
			}
			slices.Sort(names)
			return names
		}
		sync(job("a", "0 1 * * *"), job("b", "0 2 * * *"))
		own := h.add(t, "0 3 * * *")
		if err := h.Sync(ctx, []orchestrator.Job{job("a", "0 1 * * *"), job("c", "soon")}); err == nil {
			t.Error("a wrong job was taken")
		}
		if diff := cmp.Diff([]string{"a", "b", "look"}, names()); diff != "" {
			t.Error(diff)
		}
		a := orchestrator.ConfiguredJob(orchestrator.JobScheduled, "a")
		if _, err := h.Pause(ctx, a, here); err != nil {
			t.Fatal(err)
		}
		if err := h.Delete(ctx, a, here); !errors.Is(err, orchestrator.ErrJobConfigured) {
			t.Errorf("delete: %v", err)
		}
		if _, err := h.Edit(ctx, a, here,
			func(*orchestrator.Job) error { return nil }); !errors.Is(err, orchestrator.ErrJobConfigured) {
			t.Errorf("edit: %v", err)
		}
		h.moveClock(5 * time.Hour) // ductor was not running at 1, 2 and 3
		h.replaceScheduler()
		sync(job("a", "0 1 * * *"), job("b", "0 2 * * *"))
		h.start(t)
		time.Sleep(time.Minute)
		h.stop()
		var ran []string
		for _, o := range h.runner.asked {
			ran = append(ran, o.Prompt.Text)
		}
		slices.Sort(ran)
		if diff := cmp.Diff([]string{"b", "look"}, ran); diff != "" {
			t.Errorf("made up for (a is paused): %s", diff)
		}
		sync(job("a", "0 1 * * *"))
		if diff := cmp.Diff([]string{"a", "look"}, names()); diff != "" {
			t.Error(diff)
		}
		if !h.get(t, a).Job.Paused || h.get(t, own.Job.ID).Job.Configured {
			t.Error("a job lost what the chat said of it")
		}
	})
}

// A run started by a user's button has the rights of the chat, at most in its mode. A job whose prompt or schedule was
// edited loses its rights.
func TestAManualRunHasTheRightsOfTheChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, day)
		h.start(t)
		defer h.stop()
		pressed := func(j *orchestrator.Job) {
			j.Rights = orchestrator.Rights{Of: orchestrator.RightsOfPress, Mode: cli.AcceptEdits}
		}
		kept, edited := h.add(t, "0 1 * * *", pressed).Job.ID, h.add(t, "0 2 * * *", pressed).Job.ID
		if _, err := h.Edit(t.Context(), kept, here,
			func(j *orchestrator.Job) error { j.Name = "other"; return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Edit(t.Context(), edited, here,
			func(j *orchestrator.Job) error { j.Prompt = "delete all"; return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		rights := map[string]orchestrator.Rights{}
		h.runner.mu.Lock()
		for _, o := range h.runner.asked {
			rights[o.Prompt.Text] = o.Prompt.Rights
		}
		h.runner.mu.Unlock()
		if got := rights["look"]; !got.Equal(orchestrator.Rights{Of: orchestrator.RightsOfPress,
			Mode: cli.AcceptEdits}) {
			t.Errorf("pressed for, it has %+v", got)
		}
		if got := rights["delete all"]; !got.Equal(orchestrator.Rights{Of: orchestrator.RightsOfJob}) {
			t.Errorf("edited, it has %+v; all: %+v", got, rights)
		}
	})
}
