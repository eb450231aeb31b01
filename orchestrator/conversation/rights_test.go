package conversation_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/conversation"
)

// askedWith lets the agent ask for something in a turn with rights of its own, and denies the request.
func (h *house) askedWith(t *testing.T, prompt string, r orchestrator.Rights, ev cli.ApprovalAsked) (asked bool) {
	t.Helper()
	h.asking(ev)
	before := len(h.board.all())
	o := order(prompt, prompt, orchestrator.Wants{})
	o.Prompt.Conversation, o.Prompt.Person, o.Prompt.Rights = here, owner, r
	h.order(t, o)
	h.eventually(t, prompt+" to be over or asked", func() bool {
		return slices.Contains(h.chat.log(), "done "+prompt) || len(h.board.all()) > before
	})
	if asked = len(h.board.all()) > before; asked {
		a := h.awaitApproval(t, ev.Title)
		if a.Rule != "" || a.SessionRule != "" {
			t.Errorf("%s: a rule is offered that would not count: %q, %q", prompt, a.SessionRule, a.Rule)
		}
		if _, err := h.Decide(t.Context(), a.ID, a.Nonce, by(owner, here), orchestrator.Verdict{Choice: orchestrator.AllowPattern}); !errors.Is(err, orchestrator.ErrBadChoice) {
			t.Errorf("%s: a rule can be made: %v", prompt, err)
		}
		h.decide(t, a, orchestrator.Verdict{Choice: orchestrator.Deny})
	}
	h.await(t, "done "+prompt)
	return asked
}

// last returns the last request to the agent.
func (h *house) last() cli.Request {
	all := h.agent.requests()
	return all[len(all)-1]
}

func TestATurnWithRightsOfItsOwnUsesNoChoiceOfTheChat(t *testing.T) {
	root := t.TempDir()
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), root)
	must(t, h.SetPermission(t.Context(), here, cli.AcceptEdits, owner))
	h.turnWith(t, here, "mine", bash("1", "git status"), orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	if h.turnWith(t, here, "mine too", bash("2", "git status"), allow()) {
		t.Fatal("the rule of the chat does not count in the chat")
	}
	for _, tt := range []struct {
		name    string
		rights  orchestrator.Rights
		command string
		asked   bool
		mode    cli.PermissionMode
	}{
		{"member", orchestrator.Rights{Of: orchestrator.RightsOfMember}, "git status", true, cli.Ask},
		{"job", orchestrator.Rights{Of: orchestrator.RightsOfJob}, "git status", true, cli.Ask},
		{"plan", orchestrator.Rights{Of: orchestrator.RightsOfJob, Mode: cli.Plan}, "git status", true, cli.Plan},
		{"rules", orchestrator.Rights{Of: orchestrator.RightsOfJob, Rules: []string{"Bash(git status *)"}}, "git status src", false, cli.Ask},
		{"shell", orchestrator.Rights{Of: orchestrator.RightsOfJob, Rules: []string{"Bash"}}, "git status", true, cli.Ask},
		{"beyond", orchestrator.Rights{Of: orchestrator.RightsOfJob, Rules: []string{"Bash(git status *)"}}, "git status; id", true, cli.Ask},
	} {
		if got := h.askedWith(t, tt.name, tt.rights, bash("a", tt.command)); got != tt.asked {
			t.Errorf("%s: a button was asked for: %v, want %v", tt.name, got, tt.asked)
		}
		if req := h.last(); req.Permission != tt.mode {
			t.Errorf("%s: it ran in the mode %s, want %s", tt.name, req.Permission, tt.mode)
		}
	}
}

// A run that a user scheduled has the rights of the chat at that time, limited to the mode when the user pressed, and
// never a bypass.
func TestARunThatAUserPressedForKeepsItsRights(t *testing.T) {
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), t.TempDir())
	h.turnWith(t, here, "mine", bash("1", "git status"), orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	for _, tt := range []struct{ chat, most, want cli.PermissionMode }{
		{cli.AcceptEdits, cli.AcceptEdits, cli.AcceptEdits},
		{cli.Ask, cli.AcceptEdits, cli.Ask},
		{cli.Plan, cli.AcceptEdits, cli.Plan},
		{cli.Bypass, cli.AcceptEdits, cli.AcceptEdits},
		{cli.Bypass, cli.Ask, cli.Ask},
	} {
		must(t, h.SetPermission(t.Context(), here, tt.chat, owner))
		name := string(tt.chat + " " + tt.most)
		if h.askedWith(t, name, orchestrator.Rights{Of: orchestrator.RightsOfPress, Mode: tt.most}, bash("a", "git status src")) {
			t.Errorf("%s: the rule of the chat does not count", name)
		}
		if req := h.last(); req.Permission != tt.want || !req.Attended {
			t.Errorf("%s: it ran in %s", name, req.Permission)
		}
		if turn, err := h.db.Turn(t.Context(), cli.TurnID(name)); err != nil || !turn.Bypass.IsZero() {
			t.Errorf("%s: its bypass ends at %v, %v", name, turn.Bypass, err)
		}
	}
}

func TestRightsOfATurnOutliveARestartAndARepetition(t *testing.T) {
	path, root := filepath.Join(t.TempDir(), "ductor.db"), t.TempDir()
	h := openForOrders(t, path, root)
	must(t, h.SetPermission(t.Context(), here, cli.AcceptEdits, owner))
	h.agent.reply = untilAborted
	h.submit(t, here, "first")
	h.eventually(t, "the agent to be asked", func() bool { return len(h.agent.requests()) == 1 })
	o := order("o1", "unattended", orchestrator.Wants{})
	o.Prompt.Conversation = here
	o.Prompt.Rights = orchestrator.Rights{Of: orchestrator.RightsOfJob, Tools: cli.ToolList{Only: []string{"Read"}}}
	h.order(t, o)
	h.shut()
	h.db.Close()

	h = openForOrders(t, path, root)
	must(t, h.Recover(t.Context()))
	h.await(t, "done unattended")
	check := func(when string) {
		if req := h.last(); req.Permission != cli.Ask || len(req.ToolLists) != 5 {
			t.Errorf("%s it ran in the mode %s with the tools %q", when, req.Permission, req.Tools)
		}
	}
	check("after a restart")
	if _, err := h.Choose(t.Context(), "o1", orchestrator.ActionAgain, by(owner, here)); err != nil {
		t.Fatal(err)
	}
	h.eventually(t, "the repetition", func() bool { return len(h.agent.requests()) == 2 })
	check("run again")
}

func TestPatternsOfJobs(t *testing.T) {
	for text, ok := range map[string]bool{
		"WebFetch": true, "Bash(git status)": true, "Bash(make -j4 *)": true, "mcp__x__y": true, "Bash(npm run build:all *)": true,
		"": false, "Bash(": false, "Bash()": false, "Bash(*)": false, "Bash(a; b)": false, "Bash(echo $HOME)": false,
		"Bash(git status": false, "Bash git": false, cli.PlanTool: false, "*": false, "Bash(cat *.go)": false,
	} {
		if err := approval.CheckRights(orchestrator.Rights{Rules: []string{text}}); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A member's prompt runs in plan mode if a user chose plan for the chat.
func TestAMemberMayDoNoMoreThanTheUsersOfTheChat(t *testing.T) {
	h := openForOrders(t, filepath.Join(t.TempDir(), "ductor.db"), t.TempDir())
	for _, tt := range []struct{ chat, want cli.PermissionMode }{
		{cli.Plan, cli.Plan}, {cli.Ask, cli.Ask}, {cli.Bypass, cli.Ask},
	} {
		must(t, h.SetPermission(t.Context(), here, tt.chat, owner))
		of := orchestrator.Rights{Of: orchestrator.RightsOfMember}
		h.askedWith(t, "in "+string(tt.chat), of, bash("a", "git status"))
		if got := h.last().Permission; got != tt.want {
			t.Errorf("in a chat in %s it ran in %s", tt.chat, got)
		}
	}
}

// A waiting prompt whose user may no longer use ductor is dropped, also after a restart. The prompts behind it run.
func TestPromptsOfRemovedUsersAreDropped(t *testing.T) {
	path, root := filepath.Join(t.TempDir(), "ductor.db"), t.TempDir()
	var removed atomic.Int64
	permits := func(o *conversation.Options) {
		o.Orders, o.Dir, o.Roots = o.Store.(*store.DB), root, []string{root}
		o.Permits = func(t orchestrator.Turn) bool { return int64(t.Prompt.Person) != removed.Load() }
	}
	h := openAt(t, path, permits)
	h.agent.reply = untilAborted
	h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	of := func(id string, person orchestrator.PersonID) orchestrator.Order {
		o := order(id, id, orchestrator.Wants{})
		o.Prompt.Person = person
		return o
	}
	h.order(t, of("r1", 66))
	h.order(t, of("r2", 66))
	removed.Store(66)
	h.agent.mu.Lock()
	h.agent.reply = echo
	h.agent.mu.Unlock()
	for id, press := range map[cli.TurnID]func(context.Context, cli.TurnID, orchestrator.Press) error{
		"r1": h.Interrupt, "r2": h.Steer,
	} {
		if err := press(t.Context(), id, by(owner, here)); !errors.Is(err, orchestrator.ErrNotWaiting) {
			t.Errorf("a press for the prompt %s of a removed user: %v", id, err)
		}
	}
	h.order(t, of("r3", 66))
	h.order(t, of("of another", 67))
	must(t, h.Interrupt(t.Context(), "of another", by(owner, here)))
	h.await(t, "done of another")
	h.submit(t, here, "later")
	h.await(t, "done later")
	if diff := cmp.Diff([]string{"running", "of another", "later"}, h.agent.prompts()); diff != "" {
		t.Errorf("what ran: %s", diff)
	}
	for _, id := range []cli.TurnID{"r1", "r2", "r3"} {
		if turn, err := h.db.Turn(t.Context(), id); err != nil || turn.State != orchestrator.TurnCancelled {
			t.Errorf("%s is %s, %v", id, turn.State, err)
		}
	}
	removed.Store(0)
	h.agent.mu.Lock()
	h.agent.reply = untilAborted
	h.agent.mu.Unlock()
	h.submit(t, here, "before the restart")
	h.awaitAsked(t, 4)
	h.order(t, of("r4", 66))
	h.shut()
	h.db.Close()

	removed.Store(66)
	h = openAt(t, path, permits)
	must(t, h.Recover(t.Context()))
	h.submit(t, here, "after the restart")
	h.await(t, "done after the restart")
	if slices.Contains(h.agent.prompts(), "r4") {
		t.Error("it ran after the restart")
	}
}
