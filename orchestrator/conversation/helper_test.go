package conversation_test

import (
	"context"
	"errors"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/orchestrator"
)

// After a restart, an agent may use a tool of ductor before anything has used its chat.
func TestNoTurnIsActiveInAnUnusedChat(t *testing.T) {
	if _, err := open(t).ActiveTurn(here, "claude"); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("it finds %v", err)
	}
}

// Requests of another agent that works for a turn are decided by the users of the turn and by the rules for that agent,
// within its tool lists.
func TestAHelperAsksTheUsersOfItsTurn(t *testing.T) {
	h := open(t)
	var codex, claude, denied cli.Decision
	var atWork context.Context
	h.agent.reply = func(_ context.Context, who cli.Agent, req cli.Request, _ func(cli.Event)) cli.Result {
		turn, err := h.ActiveTurn(here, who)
		if err != nil {
			t.Error(err)
		}
		ask := func(agent cli.Agent, command string, lists ...cli.ToolList) cli.Decision {
			d, err := h.AskFor(t.Context(), req.Turn, orchestrator.Helper{Agent: agent, ToolLists: lists},
				clitest.WithEffect(bash("x", command), req.Dir))
			if err != nil {
				t.Error(err)
			}
			return d
		}
		denied = ask("claude", "git log", cli.ToolList{Denied: []string{"shell"}})
		codex = ask("codex", "git status")
		claude = ask("claude", "git diff")
		var leave func()
		if atWork, leave, err = turn.Help(t.Context()); err != nil {
			t.Error(err)
		}
		go func() { <-atWork.Done(); leave() }()
		return cli.Result{Text: "done"}
	}
	h.submit(t, here, "go")
	h.decide(t, h.awaitApproval(t, "git status"), orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	asked := h.awaitApproval(t, "git diff")
	h.decide(t, asked, orchestrator.Verdict{Choice: orchestrator.Deny})
	h.await(t, "done go")
	if denied.Allow || !codex.Allow || claude.Allow {
		t.Errorf("%+v %+v %+v", denied, codex, claude)
	}
	if !errors.Is(context.Cause(atWork), orchestrator.ErrNoTurn) {
		t.Errorf("the turn has ended, and who works for it goes on: %v", context.Cause(atWork))
	}
	p, err := h.Permissions(t.Context(), here)
	if err != nil || len(p.Rules) != 1 || p.Rules[0].Agent != "codex" {
		t.Errorf("the rule is %+v, %v", p.Rules, err)
	}
}
