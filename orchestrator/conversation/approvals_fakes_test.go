package conversation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// board records the approvals that are shown.
type board struct {
	mu    sync.Mutex
	shown []orchestrator.Approval
	fresh int // number of calls with isNew
}

func (b *board) ShowApproval(a orchestrator.Approval, isNew bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isNew {
		b.fresh++
	}
	b.shown = append(b.shown, a)
}

// all returns the current state of the approvals, in the order they were first shown.
func (b *board) all() []orchestrator.Approval {
	b.mu.Lock()
	defer b.mu.Unlock()
	var now []orchestrator.Approval
	for _, a := range b.shown {
		i := slices.IndexFunc(now, func(other orchestrator.Approval) bool { return other.ID == a.ID })
		if i < 0 {
			now = append(now, a)
		} else {
			now[i] = a
		}
	}
	return now
}

// states formats the state of every approval: "title state ×n".
func (b *board) states() []string {
	var out []string
	for _, a := range b.all() {
		out = append(out, fmt.Sprintf("%s %s ×%d", approvalTitle(a), a.State, a.Same()))
	}
	return out
}

func approvalTitle(a orchestrator.Approval) string {
	if a.Request != nil {
		return a.Request.Title
	}
	return a.Questions[0].Text
}

// awaitApproval waits until an approval with this title is open, and returns it.
func (h *house) awaitApproval(t testing.TB, title string) orchestrator.Approval {
	t.Helper()
	var found orchestrator.Approval
	h.eventually(t, "the approval "+title, func() bool {
		for _, a := range h.board.all() {
			if approvalTitle(a) == title && a.State == orchestrator.ApprovalOpen {
				found = a
				return true
			}
		}
		return false
	})
	return found
}

// bash is a request to run a command.
func bash(id cli.ApprovalID, command string) cli.ApprovalAsked {
	input, err := json.Marshal(map[string]string{"command": command, "description": "as asked"})
	if err != nil {
		panic(err)
	}
	return cli.ApprovalAsked{ID: id, Tool: "Bash", Title: command, Input: input}
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asking lets the agent ask these in every turn and answer with the decisions.
func (h *house) asking(evs ...cli.Event) {
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		text := ""
		for _, d := range h.agent.request(ctx, emit, evs...) {
			text += fmt.Sprint(d.Allow, " ")
		}
		if ctx.Err() != nil {
			return cli.Cut(ctx, who)
		}
		return cli.Result{Text: text}
	}
}

func by(p orchestrator.PersonID, in orchestrator.ConversationID) orchestrator.Press {
	return orchestrator.Press{Conversation: in, Person: p, Role: orchestrator.RoleUser}
}

// owner is the user of the private chat here.
const owner orchestrator.PersonID = 7

func allow() orchestrator.Verdict { return orchestrator.Verdict{Choice: orchestrator.AllowOnce} }

// decide decides an approval and fails the test if that is impossible.
func (h *house) decide(t testing.TB, a orchestrator.Approval, v orchestrator.Verdict) orchestrator.Approval {
	t.Helper()
	now, err := h.Decide(t.Context(), a.ID, a.Nonce, by(owner, a.Conversation), v)
	if err != nil {
		t.Fatalf("decide %s: %v", approvalTitle(a), err)
	}
	return now
}
