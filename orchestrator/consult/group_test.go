package consult

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

var panel = []orchestrator.ModelChoice{{Agent: "claude", Model: "opus"}, {Agent: "codex"}, {Agent: "gemini"}}

func which(rounds int) orchestrator.GroupQuestion {
	return orchestrator.GroupQuestion{ConsultQuestion: orchestrator.ConsultQuestion{Conversation: here, Text: "Which?"},
		Panel: panel, Rounds: rounds}
}

// Each model answers, then answers again in the same session after seeing the other answers. Then the first model
// concludes. The next agent of the session is told each answer once.
func TestAGroupThinks(t *testing.T) {
	var mu sync.Mutex
	var prompts []string
	_, e := engine(func(_ context.Context, req cli.Request) cli.Result {
		mu.Lock()
		defer mu.Unlock()
		prompts = append(prompts, req.Prompt)
		switch {
		case req.Model == "opus" && strings.HasPrefix(req.Prompt, "Which?"):
			return cli.Result{Err: cli.Failf(cli.Overloaded, "claude", "busy")}
		case strings.HasPrefix(req.Prompt, weigh):
			return cli.Result{Text: "so be it"}
		case strings.HasPrefix(req.Prompt, reconsider):
			return cli.Result{Text: "second thoughts", Consumed: cli.Consumption{CostUSD: 1}}
		}
		return cli.Result{Text: "first thoughts", AgentSessionID: "own",
			Consumed: cli.Consumption{CostUSD: 1, Usage: cli.Usage{Input: 10, Output: 1}}}
	})
	steps, cost, tokens := 0, 0.0, int64(0)
	all, err := e.Group(t.Context(), which(2), func(s orchestrator.GroupStep) {
		steps, cost, tokens = steps+1, cost+s.Answer.CostUSD, tokens+s.Answer.Usage.Input+s.Answer.Usage.Output
	})
	if err != nil || steps != 3+2+1 || cost != 4 || tokens != 22 || all.Conclusion.Answer.Text != "so be it" ||
		all.Conclusion.Model.Agent != "codex" {
		t.Fatalf("%d steps, %+v, %v", steps, all, err)
	}
	if all.Steps[0].Err == nil || all.Steps[1].Answer.Text != "second thoughts" || all.Steps[1].Round != 2 {
		t.Errorf("%+v", all.Steps)
	}
	again, last := 0, prompts[len(prompts)-1]
	for _, p := range prompts {
		if strings.HasPrefix(p, reconsider) {
			if again++; strings.Count(p, "<answer") != 1 || !strings.Contains(p, "first thoughts") {
				t.Errorf("a model is told of the others: %q", p)
			}
		}
	}
	if again != 2 || strings.Count(last, "second thoughts") != 2 || !strings.Contains(last, "Which?") {
		t.Errorf("%d models think again; the first concludes on %q", again, last)
	}
	now := orchestrator.ConsultQuestion{Conversation: here, Text: "And now?",
		Session: string(all.Conclusion.Answer.Session), Model: orchestrator.ModelChoice{Agent: "copilot"}}
	if _, err := e.Ask(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	told := prompts[len(prompts)-1]
	for part, want := range map[string]int{"first thoughts": 2, "second thoughts": 2, "so be it": 1, "<answer": 0} {
		if n := strings.Count(told, part); n != want {
			t.Errorf("the next agent is told %q %d times, want %d: %q", part, n, want, told)
		}
	}
}

func TestAGroupThatComesToNothing(t *testing.T) {
	_, e := engine(func(_ context.Context, req cli.Request) cli.Result {
		if req.Model == "opus" {
			return cli.Result{Text: "alone"}
		}
		return cli.Result{Err: cli.Failf(cli.NotLoggedIn, "codex", "")}
	})
	nothing := func(orchestrator.GroupStep) {}
	all, err := e.Group(t.Context(), which(1), nothing)
	if !errors.Is(err, orchestrator.ErrNoGroup) || all.Steps[0].Answer.Text != "alone" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, q := range []orchestrator.GroupQuestion{{Panel: panel[:1], Rounds: 1}, {Panel: panel, Rounds: 0}, {Panel: panel, Rounds: 4}} {
		if _, err := e.Group(t.Context(), q, nothing); !errors.Is(err, orchestrator.ErrBadChoice) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// An abort cancels all models of a group, and no further model is asked.
func TestAGroupIsAborted(t *testing.T) {
	asked := make(chan bool, 10)
	_, e := engine(func(ctx context.Context, _ cli.Request) cli.Result {
		asked <- true
		<-ctx.Done()
		return cli.Result{Err: cli.Failf(cli.Crashed, "claude", "it was ended")}
	})
	done := make(chan error)
	go func() {
		_, err := e.Group(t.Context(), which(3), func(orchestrator.GroupStep) {})
		done <- err
	}()
	for range panel {
		<-asked
	}
	if n := e.Asking(here); n != 3 {
		t.Errorf("%d questions", n)
	}
	if n := e.Abort(here); n != 3 {
		t.Errorf("%d questions end", n)
	}
	if err := <-done; !errors.Is(err, cli.ErrAborted) || len(asked) != 0 || e.Asking(here) != 0 {
		t.Errorf("%v, and %d questions", err, len(asked))
	}
}

// If a group becomes a supergroup while models think, the rest of the question belongs to the supergroup, where users
// can abort it.
func TestAQuestionMovesWithItsGroup(t *testing.T) {
	was, is := orchestrator.ConversationID{Chat: -5}, orchestrator.ConversationID{Chat: -1000000000005}
	var e *Engine
	var move sync.Once
	a, e := engine(func(ctx context.Context, req cli.Request) cli.Result {
		if strings.HasPrefix(req.Prompt, weigh) {
			if e.Asking(was) != 0 || e.Asking(is) != 1 || e.Abort(is) != 1 {
				t.Errorf("%d questions in the group, %d in the supergroup", e.Asking(was), e.Asking(is))
			}
			<-ctx.Done()
			return cli.Cut(ctx, "codex")
		}
		move.Do(func() { e.MoveChat(was.Chat, is.Chat) })
		return cli.Result{Text: "thoughts"}
	})
	ctx, end := e.Begin(t.Context(), was)
	q := which(2)
	q.Conversation = was
	if _, err := e.Group(ctx, q, func(orchestrator.GroupStep) {}); !errors.Is(err, cli.ErrAborted) {
		t.Errorf("the question ends with %v", err)
	}
	end()
	if e.Asking(is) != 0 || len(a.stored.entries) != 6 {
		t.Errorf("%d questions run, and %d answers are stored", e.Asking(is), len(a.stored.entries))
	}
	for _, entry := range a.stored.entries {
		if entry.Prompt.Conversation != is {
			t.Errorf("an answer is stored in %v", entry.Prompt.Conversation)
		}
	}
}

func TestAnEstimate(t *testing.T) {
	_, e := engine(nil)
	known := []cli.MenuEntry{
		{Agent: "claude", Models: []cli.Model{{ID: "opus", Price: cli.Price{Input: 10, Output: 50}}, {ID: "haiku"}}},
		{Agent: "codex", Models: []cli.Model{{ID: "gpt", Default: true, Price: cli.Price{Input: 1, Output: 10}}}},
	}
	one := e.Estimate(which(1), known)
	if one.Questions != 4 || one.Unpriced != 1 || one.Tokens < 4*usualStart || one.CostUSD < 2*0.15+0.015 ||
		one.CostUSD > 0.5 {
		t.Errorf("%+v", one)
	}
	if two := e.Estimate(which(2),
		known); two.Questions != 7 || two.CostUSD <= one.CostUSD {
		t.Errorf("%+v after %+v", two, one)
	}
}
