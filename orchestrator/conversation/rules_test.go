package conversation_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// turnWith lets a turn ask for something that a rule allows, or that v decides if no rule does.
func (h *house) turnWith(t *testing.T, in orchestrator.ConversationID, prompt string, ev cli.ApprovalAsked,
	v orchestrator.Verdict) (asked bool) {
	t.Helper()
	h.asking(ev)
	before := len(h.board.all())
	h.submit(t, in, prompt)
	h.eventually(t, prompt+" to be over or asked", func() bool {
		return slices.Contains(h.chat.log(), "done "+prompt) || len(h.board.all()) > before
	})
	if asked = len(h.board.all()) > before; asked {
		h.decide(t, h.awaitApproval(t, ev.Title), v)
	}
	h.await(t, "done "+prompt)
	return asked
}

func TestARuleDecidesUntilItIsRevoked(t *testing.T) {
	h := open(t)
	lasting := orchestrator.Verdict{Choice: orchestrator.AllowPattern}
	if !h.turnWith(t, here, "one", bash("1", "git status"), lasting) {
		t.Fatal("the first is not asked")
	}
	if h.turnWith(t, here, "two", bash("2", "git status src"), allow()) {
		t.Error("a rule does not count")
	}
	if !h.turnWith(t, here, "three", bash("3", "git status; id"), orchestrator.Verdict{Choice: orchestrator.Deny}) {
		t.Error("a rule lets a second command through")
	}
	if !h.turnWith(t, there, "four", bash("4", "git status"), allow()) {
		t.Error("a rule counts in another topic")
	}
	p, err := h.Permissions(t.Context(), here)
	if err != nil || len(p.Rules) != 1 || p.Rules[0].Text != "Bash(git status *)" || p.Rules[0].By != owner || p.Mode != cli.Ask {
		t.Fatalf("permissions are %+v, %v", p, err)
	}
	if err := h.Revoke(t.Context(), p.Rules[0].ID, by(owner, there)); !errors.Is(err, orchestrator.ErrNoRule) {
		t.Errorf("revoked from another topic: %v", err)
	}
	must(t, h.Revoke(t.Context(), p.Rules[0].ID, by(owner, here)))
	if err := h.Revoke(t.Context(), p.Rules[0].ID, by(owner, here)); !errors.Is(err, orchestrator.ErrNoRule) {
		t.Errorf("revoked twice: %v", err)
	}
	if !h.turnWith(t, here, "five", bash("5", "git status"), allow()) {
		t.Error("a rule counts that was revoked")
	}
	log, err := h.Audit(t.Context(), time.Time{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var whats []orchestrator.AuditKind
	for _, e := range log {
		whats = append(whats, e.What)
	}
	want := []orchestrator.AuditKind{"allowed", "revoked", "allowed", "denied", "ruled", "allowed", "rule"}
	if !slices.Equal(whats, want) || log[1].Rule != "Bash(git status *)" || log[4].Rule != "Bash(git status *)" || log[4].By != 0 {
		t.Errorf("the audit is %+v", log)
	}
}

// A tool that a list denies is denied without asking a user, even if a rule allows it.
func TestAToolThatAListDeniesIsDeniedUnasked(t *testing.T) {
	h := open(t)
	if !h.turnWith(t, here, "one", bash("1", "git status"), orchestrator.Verdict{Choice: orchestrator.AllowPattern}) {
		t.Fatal("the first is not asked")
	}
	for i, tt := range []struct{ denied, command, told string }{
		// Allowed by the rule.
		{"shell", "git status", "not among those that may be used"}, {"web", "git status", "true"},
		{"shell", "git push", "not among those that may be used"},
	} {
		must(t, h.SetTools(t.Context(), here, cli.ToolList{Denied: []string{tt.denied}}, owner))
		if h.turnWith(t, here, fmt.Sprint("turn ", i), bash(cli.ApprovalID(fmt.Sprint(i+2)), tt.command), allow()) {
			t.Errorf("%s with %s denied is asked", tt.command, tt.denied)
		}
		if all := h.agent.decisions(); !strings.Contains(all[len(all)-1], tt.told) {
			t.Errorf("%s with %s denied: the agent is told %q", tt.command, tt.denied, all)
		}
	}
	log, err := h.Audit(t.Context(), time.Time{}, 1)
	if err != nil || log[0].What != orchestrator.AuditDenied || log[0].Rule != orchestrator.RuledByTools || log[0].Title != "git push" {
		t.Errorf("the audit is %+v, %v", log, err)
	}
	if err := h.SetTools(t.Context(), here, cli.ToolList{Denied: []string{"mcp"}}, owner); !errors.Is(err, orchestrator.ErrBadChoice) {
		t.Errorf("a name that means nothing: %v", err)
	}
	p, err := h.Permissions(t.Context(), here)
	if err != nil || !p.Tools.Equal(cli.ToolList{Denied: []string{"shell"}}) {
		t.Errorf("permissions are %+v, %v", p, err)
	}
}

func TestARuleOfASessionEndsWithIt(t *testing.T) {
	h := open(t)
	session := orchestrator.Verdict{Choice: orchestrator.AllowSession}
	h.turnWith(t, here, "one", bash("1", "make | tee log"), session)
	if h.turnWith(t, here, "two", bash("2", "make | tee log"), allow()) {
		t.Error("a rule does not count")
	}
	must(t, h.New(t.Context(), here))
	if !h.turnWith(t, here, "three", bash("3", "make | tee log"), allow()) {
		t.Error("a rule of a session counts in the next")
	}
	if p, err := h.Permissions(t.Context(), here); err != nil || len(p.Rules) != 0 {
		t.Errorf("rules of another session are shown: %+v, %v", p, err)
	}
}

func TestANewRuleDecidesWhatWaits(t *testing.T) {
	h := open(t)
	h.asking(bash("a", "git status"), bash("b", "git status src"), bash("c", "git push"))
	h.submit(t, here, "go")
	first := h.awaitApproval(t, "git status")
	last := h.awaitApproval(t, "git push")
	h.decide(t, first, orchestrator.Verdict{Choice: orchestrator.AllowPattern})
	if got := h.agent.decisions(); !slices.Equal(got, []string{"a true []", "b true []"}) {
		t.Errorf("the agent was told %q", got)
	}
	h.decide(t, last, orchestrator.Verdict{Choice: orchestrator.Deny})
	h.await(t, "done go")
}

// Between the card and the press, a directory became a link that leads out.
func TestARuleIsMadeOnlyAsItWasShown(t *testing.T) {
	dir := t.TempDir()
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) { o.Dir, o.Roots = dir, []string{dir} })
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	h.asking(cli.ApprovalAsked{ID: "a", Tool: "Edit", Title: "sub/x", Changes: []cli.FileChanged{{Path: "sub/x", Kind: cli.FileUpdated}}})
	h.submit(t, here, "go")
	a := h.awaitApproval(t, "sub/x")
	if a.SessionRule != "Edit(any file below "+dir+" that is not hidden)" {
		t.Fatalf("offered %q", a.SessionRule)
	}
	must(t, os.Remove(filepath.Join(dir, "sub")))
	must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "sub")))
	_, err := h.Decide(t.Context(), a.ID, a.Nonce, by(owner, here), orchestrator.Verdict{Choice: orchestrator.AllowSession})
	if !errors.Is(err, orchestrator.ErrPathMoved) {
		t.Errorf("pressed: %v", err)
	}
	h.decide(t, a, orchestrator.Verdict{Choice: orchestrator.Deny})
	h.await(t, "done go")
}
