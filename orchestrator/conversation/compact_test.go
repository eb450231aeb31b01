package conversation_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/orchestrator"
)

// fillingAgent answers prompts in a session of its own, reports how full the session is, and compacts it when asked
// unless cannot is set.
func fillingAgent(cannot bool) func(context.Context, cli.Agent, cli.Request, func(cli.Event)) cli.Result {
	return func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		if req.Task == cli.TaskCompact && cannot {
			return cli.Result{Err: cli.CannotCompact(who)}
		}
		if err := req.Started(ctx, cli.Start{}); err != nil {
			return cli.Result{Err: cli.AsFailure(who, err)}
		}
		emit(cli.SessionStarted{AgentSessionID: "s1"})
		if req.Task == cli.TaskCompact {
			emit(cli.CompactBoundary{PreTokens: 150_000})
			return cli.Result{Fill: cli.Fill{Used: 20_000, Limit: 200_000}}
		}
		return cli.Result{Text: "ok " + req.Prompt, Fill: cli.Fill{Used: 150_000, Limit: 200_000}}
	}
}

func (h *house) compact(t *testing.T) string {
	t.Helper()
	r, err := h.Compact(t.Context(), "keep the plan", orchestrator.Prompt{Conversation: here, Person: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ended orchestrator.Turn
	h.eventually(t, "the compaction to end", func() bool {
		ended, err = h.db.Turn(t.Context(), r.Turn)
		return err == nil && ended.Delivered
	})
	return ended.Outcome.Text + ended.Outcome.Failure
}

func TestACompactionSaysHowFullTheContextWasAndIs(t *testing.T) {
	h := open(t)
	h.agent.reply = fillingAgent(false)
	if got := h.compact(t); !strings.Contains(got, "nothing to compact") {
		t.Errorf("before the first turn it says %q", got)
	}
	h.submit(t, here, "one")
	h.await(t, "done one")
	r, err := h.Context(t.Context(), here)
	if percent, known := r.Fill.Percent(); err != nil || percent != 75 || !known {
		t.Errorf("the context is %+v, %v", r.Fill, err)
	}
	if got := h.compact(t); got != "The context is compacted: 150.0k tokens before, 20.0k tokens (10%) now." {
		t.Errorf("it says %q", got)
	}
	last := h.agent.asked[len(h.agent.asked)-1]
	if last.Prompt != "keep the plan" || last.Resume != "s1" {
		t.Errorf("the agent was asked %q in %q", last.Prompt, last.Resume)
	}
}

// An agent may count a compacted context without its instructions and tools, so that the context seems to grow. Then
// the chat shows only the current size.
func TestAContextIsNotSaidToGrow(t *testing.T) {
	for want, fill := range map[string]cli.Fill{
		"The context is compacted: 160.0k tokens (80%) now.":              {Used: 160_000, Limit: 200_000},
		"The context is compacted: 150.0k tokens before, 800 tokens now.": {Used: 800, Limit: 1_000_000},
	} {
		h := open(t)
		answer := fillingAgent(false)
		h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
			r := answer(ctx, who, req, emit)
			if req.Task == cli.TaskCompact {
				r.Fill = fill
			}
			return r
		}
		h.submit(t, here, "one")
		h.await(t, "done one")
		if got := h.compact(t); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

func TestAnAgentThatCannotCompactBeginsANewSessionWithTheHistory(t *testing.T) {
	h := open(t)
	h.agent.reply = fillingAgent(true)
	h.submit(t, here, "one")
	h.await(t, "done one")
	if got := h.compact(t); !strings.Contains(got, "gets 1 turn of this one") {
		t.Errorf("it says %q", got)
	}
	h.submit(t, here, "two")
	h.eventually(t, "the next answer", func() bool { return slices.Contains(h.chat.log(), "done two") })
	if last := h.agent.asked[len(h.agent.asked)-1]; last.Resume != "" || !strings.Contains(last.Prompt, "User: one") {
		t.Errorf("the agent was asked %q in %q", last.Prompt, last.Resume)
	}
}

// After a prompt failed because the context was full, a user lets the agent compact the context first. Until then, an
// edit of the message changes the prompt that waits, and the compaction gets no hint.
func TestAnEditOfAPromptThatWaitsForACompaction(t *testing.T) {
	h := open(t)
	h.submit(t, here, "one")
	h.await(t, "done one")
	p := newPrompt(here, "long")
	h.agent.replies(failing(cli.ContextFull, nil))
	failed, err := h.Submit(t.Context(), p, orchestrator.Wants{})
	must(t, err)
	h.await(t, "failed long")
	end := make(chan struct{})
	h.agent.replies(func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		<-end
		return fillingAgent(false)(ctx, who, req, emit)
	})
	h.submit(t, here, "running")
	h.awaitAsked(t, 3)
	_, err = h.Choose(t.Context(), failed.Turn, orchestrator.ActionCompact, by(1, here))
	must(t, err)
	if ok, err := h.EditQueued(t.Context(), here, p.Message, "short"); err != nil || !ok {
		t.Errorf("the edit: %v, %v", ok, err)
	}
	close(end)
	h.await(t, "done short")
	if diff := cmp.Diff([]string{"one", "long", "running", "", "short"}, h.agent.prompts()); diff != "" {
		t.Errorf("what was asked: %s", diff)
	}
	if got := h.agent.requests()[3].Task; got != cli.TaskCompact {
		t.Errorf("before the prompt, the task was %q", got)
	}
}
