package conversation_test

import (
	"context"
	"errors"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/orchestrator"
)

// The owner decides what agents ask that work for a client outside of turns, in the main topic of the private chat. The
// rules of that chat do not apply, no rule can be made, and the end of the call withdraws what is open.
func TestAClientOutsideOfTurnsAsksTheOwner(t *testing.T) {
	h := open(t)
	o := orchestrator.Outsider{Name: "desktop", Number: 3, Owner: orchestrator.PersonID(here.Chat)}
	h.agent.reply = func(_ context.Context, _ cli.Agent, req cli.Request, _ func(cli.Event)) cli.Result {
		if _, err := h.AskFor(t.Context(), req.Turn, orchestrator.Helper{Agent: "codex"},
			clitest.WithEffect(bash("x", "git status"), req.Dir)); err != nil {
			t.Error(err)
		}
		return cli.Result{Text: "done"}
	}
	h.submit(t, here, "go")
	h.decide(t, h.awaitApproval(t, "git status"), orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	h.await(t, "done go")

	elsewhere := orchestrator.Outsider{Name: "ide", Number: 4, Owner: o.Owner, Dir: "/"}
	if _, _, err := h.OpenOutside(t.Context(), elsewhere); !errors.Is(err, orchestrator.ErrOutsideRoot) {
		t.Errorf("outside of the roots: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	call, end, err := h.OpenOutside(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if call.Request.Permission != cli.Ask || call.Turn.Prompt.Conversation != o.Conversation() ||
		call.Turn.Agent != "MCP desktop" {
		t.Errorf("the call is %+v, %+v", call.Turn, call.Request)
	}
	decided := make(chan cli.Decision, 1)
	ask := func(command string) {
		d, err := h.AskFor(ctx, call.Turn.ID, orchestrator.Helper{Agent: "codex"},
			clitest.WithEffect(bash("y", command), call.Request.Dir))
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		decided <- d
	}
	go ask("git status")
	asked := h.awaitApproval(t, "git status")
	if asked.Conversation != here || asked.Outsider() != "desktop" || asked.Rule != "" || asked.SessionRule != "" ||
		asked.Edits {
		t.Errorf("the approval is %+v", asked)
	}
	h.decide(t, asked, orchestrator.Verdict{Choice: orchestrator.AllowOnce})
	if d := <-decided; !d.Allow {
		t.Errorf("the decision is %+v", d)
	}
	go ask("git push")
	asked = h.awaitApproval(t, "git push")
	cancel()
	<-decided
	end()
	if now, err := h.Approval(t.Context(), asked.ID, here); err != nil ||
		now.State != orchestrator.ApprovalWithdrawn {
		t.Errorf("the end of the call leaves %+v, %v", now.Decision, err)
	}
	if _, err := h.AskUser(t.Context(), call.Turn.ID, bash("z", "ls")); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("after the call: %v", err)
	}
}
