package conversation_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// A group has these IDs before and after it becomes a supergroup.
var was, is = orchestrator.ConversationID{Chat: -5}, orchestrator.ConversationID{Chat: -1000000000005}

// If a group becomes a supergroup, everything goes on under its new ID: what waits runs with the choices and the
// session of the group, after the running turn, which users can stop there.
func TestAGroupMovesWithItsQueue(t *testing.T) {
	for name, known := range map[string]bool{"to a new ID": false, "to a known ID": true} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
				if req.Prompt == "running" {
					return untilAborted(ctx, who, req, emit)
				}
				return echo(ctx, who, req, emit)
			}
			if known {
				if _, err := h.Status(t.Context(), is); err != nil {
					t.Fatal(err)
				}
			}
			must(t, h.SetPermission(t.Context(), was, cli.Plan, owner))
			running := h.submit(t, was, "running")
			h.awaitAsked(t, 1)
			h.submit(t, was, "waiting")
			for range 2 { // Telegram may report the move again
				must(t, h.MoveChat(t.Context(), was.Chat, is.Chat))
			}
			h.submit(t, was, "late")
			h.submit(t, is, "new")
			time.Sleep(20 * time.Millisecond)
			if got := h.agent.prompts(); len(got) > 1 {
				t.Fatalf("beside the running turn it runs %q", got[1:])
			}
			must(t, h.StopTurn(t.Context(), running.Turn, by(1, is)))
			h.await(t, "done new")
			all := h.agent.requests()
			for i, want := range []string{"waiting", "late", "new"} {
				if req := all[i+1]; !strings.HasSuffix(req.Prompt, want) || req.Conversation != is.Key() ||
					req.Permission != cli.Plan || req.Session != all[0].Session {
					t.Errorf("turn %d: %q in %s, %s, session %q; want %q in %s, plan, session %q", i, req.Prompt,
						req.Conversation, req.Permission, req.Session, want, is.Key(), all[0].Session)
				}
			}
		})
	}
}

// If users write to a supergroup before ductor knows that it was a group, both have running turns and a queue. /abort
// in the supergroup ends all of this, and the next prompt runs after both turns.
func TestAnAbortReachesBothHalvesOfAGroup(t *testing.T) {
	h := open(t)
	ended := make(chan struct{})
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if strings.HasPrefix(req.Prompt, "runs") {
			<-ctx.Done()
			<-ended
			return cli.Cut(ctx, who)
		}
		return echo(ctx, who, req, emit)
	}
	h.submit(t, was, "runs in the group")
	h.submit(t, is, "runs in the supergroup")
	h.awaitAsked(t, 2)
	h.submit(t, was, "waits in the group")
	h.submit(t, is, "waits in the supergroup")
	must(t, h.MoveChat(t.Context(), was.Chat, is.Chat))
	st, err := h.Status(t.Context(), is)
	if err != nil || st.Running == nil || len(st.Queue) != 2 {
		t.Errorf("the status is %+v with %d waiting, %v", st.Running, len(st.Queue), err)
	}
	report, err := h.Stop(t.Context(), by(1, is), func(*orchestrator.Stopping) {}, storeNothing)
	must(t, err)
	if !report.Running || report.Dropped != 2 {
		t.Errorf("the abort reports %+v", report)
	}
	h.submit(t, is, "new")
	if got := h.agent.prompts(); len(got) != 2 {
		t.Errorf("beside the turns that end it runs %q", got[2:])
	}
	close(ended)
	<-report.Stopping.Over
	h.await(t, "done new")
	if got := h.agent.prompts(); len(got) != 3 || !strings.HasSuffix(got[2], "new") {
		t.Errorf("it runs %q", got)
	}
	h.eventually(t, "no turn runs", func() bool { return !h.Runs(was) && !h.Runs(is) })
}

// A user who aborts while a group gets its new ID loses no waiting turn to the move: the abort finds it in the queue.
func TestAnAbortFindsTheQueueOfAGroupThatMoves(t *testing.T) {
	h := open(t)
	h.agent.reply = untilAborted
	h.submit(t, was, "running")
	h.awaitAsked(t, 1)
	h.submit(t, was, "waiting")
	var all sync.WaitGroup
	busy, goOn, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	stranger := orchestrator.Press{Conversation: was, Person: 2}
	all.Go(func() { // occupies the conversation, so that the move and the abort come at the same time
		_, err := h.Stop(t.Context(), stranger, func(*orchestrator.Stopping) {},
			func(orchestrator.AbortReport) orchestrator.Handled {
				close(busy)
				<-goOn
				return orchestrator.Handled{}
			})
		if err != nil {
			t.Error(err)
		}
	})
	<-busy
	all.Go(func() {
		if err := h.MoveChat(t.Context(), was.Chat, is.Chat); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(20 * time.Millisecond)
	all.Go(func() {
		report, err := h.Stop(t.Context(), by(1, was), func(*orchestrator.Stopping) { close(told) }, storeNothing)
		if err != nil || report.Dropped != 1 {
			t.Errorf("the abort drops %d turns, %v", report.Dropped, err)
		}
	})
	<-told
	time.Sleep(20 * time.Millisecond)
	close(goOn)
	all.Wait()
	h.submit(t, is, "new")
	h.awaitAsked(t, 2)
	if got := h.agent.prompts(); !slices.Equal(got, []string{"running", "new"}) {
		t.Errorf("it runs %q", got)
	}
}

// lateMove is a store that calls moved after it has moved the rows of a group.
type lateMove struct {
	*store.DB
	moved func()
}

func (s *lateMove) MoveChat(ctx context.Context, from, to int64) error {
	err := s.DB.MoveChat(ctx, from, to)
	s.moved()
	return err
}

// A prompt that comes while a group gets its new ID is stored under this ID. Otherwise a restart would run it in a group
// that does not exist any more.
func TestAPromptDuringAMoveIsStoredUnderTheNewID(t *testing.T) {
	s := &lateMove{}
	h := openAt(t, newPath(t), func(o *conversation.Options) { s.DB, o.Store = o.Store.(*store.DB), s })
	h.agent.reply = untilAborted
	h.submit(t, was, "running")
	h.awaitAsked(t, 1)
	late := make(chan cli.TurnID, 1)
	s.moved = func() {
		stored := make(chan struct{})
		go func() {
			defer close(stored)
			late <- h.submit(t, was, "late").Turn
		}()
		select {
		case <-stored:
		case <-time.After(50 * time.Millisecond): // the conversation takes the prompt after the move
		}
	}
	must(t, h.MoveChat(t.Context(), was.Chat, is.Chat))
	if turn, err := h.db.Turn(t.Context(), <-late); err != nil || turn.Prompt.Conversation != is {
		t.Errorf("it is stored in %v, %v", turn.Prompt.Conversation, err)
	}
}

// What follows a turn that ran while its group moved belongs to the new ID: a job that waits for a limit, the next
// agent after an abort, another try with an edited message, and how the end is announced.
func TestWhatFollowsATurnOfAGroupThatMoved(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *house, *laterJobs, cli.TurnID){
		"a limit": func(t *testing.T, h *house, later *laterJobs, id cli.TurnID) {
			h.await(t, "failed running")
			j, err := later.db.Job(t.Context(), orchestrator.LaterJob(id))
			if err != nil || j.Job.Conversation != is {
				t.Errorf("the job is in %v, %v", j.Job.Conversation, err)
			}
			turn, err := h.db.Turn(t.Context(), id)
			if err != nil || turn.Outcome.Announce != orchestrator.Announced {
				t.Errorf("its end is announced as %q, %v", turn.Outcome.Announce, err)
			}
		},
		"an abort": func(t *testing.T, h *house, _ *laterJobs, id cli.TurnID) {
			opened := len(h.agent.opened())
			must(t, h.StopTurn(t.Context(), id, by(1, is)))
			h.eventually(t, "an agent is opened ahead", func() bool { return len(h.agent.opened()) > opened })
			if got := h.agent.opened()[opened].req.Conversation; got != is.Key() {
				t.Errorf("the next agent is opened for %s", got)
			}
		},
		"an edit": func(t *testing.T, h *house, _ *laterJobs, id cli.TurnID) {
			r, err := h.Restart(t.Context(), id, "edited", by(1, is))
			must(t, err)
			turn, err := h.db.Turn(t.Context(), r.Turn)
			if err != nil || turn.Prompt.Conversation != is {
				t.Errorf("the edited prompt is stored in %v, %v", turn.Prompt.Conversation, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			later := &laterJobs{}
			h := openAt(t, newPath(t), func(o *conversation.Options) {
				later.open(o)
				o.Limits = orchestrator.LimitWait
			})
			limit := make(chan struct{})
			h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
				select {
				case <-limit:
					return h.limited(ctx, who, req, emit)
				case <-ctx.Done():
					return cli.Cut(ctx, who)
				}
			}
			must(t, h.Set(t.Context(), was, orchestrator.SettingNotify, string(orchestrator.NotifyAlways)))
			id := h.submit(t, was, "running").Turn
			h.awaitAsked(t, 1)
			must(t, h.MoveChat(t.Context(), was.Chat, is.Chat))
			if name == "a limit" {
				close(limit)
			}
			end(t, h, later, id)
		})
	}
}
