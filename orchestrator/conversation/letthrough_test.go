package conversation_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// In accept-edits an edit is allowed without a user and audited. A user decides requests that do more than edit, and
// every request that names one of ductor's own files.
func TestAcceptedEdits(t *testing.T) {
	own := ""
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) {
		o.Mode = cli.AcceptEdits
		own = filepath.Join(o.Dir, "config.toml")
		o.Protected = []string{cli.RealPath(own)}
	})
	edit := func(id cli.ApprovalID, path string) cli.ApprovalAsked { return writeTo(id, string(id), path) }
	missing, wider := edit("missing", "a.txt"), edit("wider", "a.txt")
	missing.Missing = "the changes"
	wider.Fields = []cli.Field{{Name: "scope", Value: "all", Weight: cli.WiderField}}
	fetched := cli.ApprovalAsked{ID: "named", Tool: "mcp__files__fetch", Title: "named", Input: []byte(`{"url":"x","to":["` + own + `"]}`)}
	for _, tc := range []struct {
		ask     cli.ApprovalAsked
		audited orchestrator.AuditKind
	}{
		{edit("inside", "a.txt"), orchestrator.AuditAccepted},
		{edit("hidden", ".env"), orchestrator.AuditAllowed},
		{edit("own", "config.toml"), orchestrator.AuditAllowed},
		{fetched, orchestrator.AuditAllowed}, {missing, orchestrator.AuditDenied}, {wider, orchestrator.AuditAllowed},
		{bash("command", "touch x"), orchestrator.AuditAllowed},
	} {
		h.asking(tc.ask)
		h.submit(t, here, string(tc.ask.ID))
		if tc.audited != orchestrator.AuditAccepted {
			asked := h.awaitApproval(t, tc.ask.Title)
			if tc.ask.ID == "own" || tc.ask.ID == "named" {
				if asked.SessionRule != "" || asked.Rule != "" {
					t.Errorf("%s: the rules %q and %q are offered", tc.ask.ID, asked.SessionRule, asked.Rule)
				}
			}
			verdict := allow()
			if tc.audited == orchestrator.AuditDenied { // it cannot be allowed
				verdict.Choice = orchestrator.Deny
			}
			h.decide(t, asked, verdict)
		}
		h.await(t, "done "+string(tc.ask.ID))
		log, err := h.Audit(t.Context(), time.Time{}, 1)
		if err != nil || len(log) != 1 || log[0].What != tc.audited || log[0].Title != tc.ask.Title {
			t.Errorf("%s: audited %+v, %v", tc.ask.ID, log, err)
		}
		shown := slices.ContainsFunc(h.board.all(), func(a orchestrator.Approval) bool { return approvalTitle(a) == tc.ask.Title })
		if shown != (tc.audited != orchestrator.AuditAccepted) {
			t.Errorf("%s: a user was asked: %v", tc.ask.ID, shown)
		}
	}
}

// After a choice about an edit or a plan, the conversation's mode changes if it was asking or planning.
func TestTheModeFollowsAChoice(t *testing.T) {
	edit, hidden := writeTo("", "an edit", "a.txt"), writeTo("", "a hidden file", ".env")
	plan := cli.ApprovalAsked{Tool: cli.PlanTool, Title: "a plan", Detail: "do it"}
	for i, tc := range []struct {
		before  cli.PermissionMode
		ask     cli.ApprovalAsked
		choice  orchestrator.Choice
		after   cli.PermissionMode
		offered bool
	}{
		{cli.Ask, edit, orchestrator.AllowEdits, cli.AcceptEdits, true},
		{cli.Ask, edit, orchestrator.AllowOnce, cli.Ask, true},
		{cli.Ask, hidden, orchestrator.AllowOnce, cli.Ask, false},
		{cli.Auto, edit, orchestrator.AllowOnce, cli.Auto, false},
		{cli.Plan, plan, orchestrator.AllowOnce, cli.Ask, true},
		{cli.Plan, plan, orchestrator.AllowEdits, cli.AcceptEdits, true},
		{cli.Plan, plan, orchestrator.Deny, cli.Plan, true},
		{cli.Ask, plan, orchestrator.AllowOnce, cli.Ask, true},
		{cli.Auto, plan, orchestrator.AllowOnce, cli.Auto, false},
	} {
		h := open(t)
		if err := h.SetPermission(t.Context(), here, tc.before, owner); err != nil {
			t.Fatal(err)
		}
		tc.ask.ID = "1"
		h.asking(tc.ask)
		h.submit(t, here, "first")
		asked := h.awaitApproval(t, tc.ask.Title)
		if asked.Edits != tc.offered {
			t.Errorf("%d: edits are offered: %v", i, asked.Edits)
		}
		if !tc.offered {
			wrong := orchestrator.Verdict{Choice: orchestrator.AllowEdits}
			if _, err := h.Decide(t.Context(), asked.ID, asked.Nonce, by(owner, here), wrong); !errors.Is(err, orchestrator.ErrBadChoice) {
				t.Errorf("%d: what is not offered is taken: %v", i, err)
			}
		}
		h.decide(t, asked, orchestrator.Verdict{Choice: tc.choice})
		h.await(t, "done first")
		p, err := h.Permissions(t.Context(), here)
		if err != nil || p.Mode != tc.after {
			t.Errorf("%d: after %s in %s the mode is %s, %v", i, tc.choice, tc.before, p.Mode, err)
		}
		if tc.after == cli.AcceptEdits && h.turnWith(t, here, "second", writeTo("2", "another", "b.txt"), allow()) {
			t.Errorf("%d: the next edit is asked", i)
		}
	}
}

// writeTo returns a request to write a file.
func writeTo(id cli.ApprovalID, title, path string) cli.ApprovalAsked {
	return cli.ApprovalAsked{
		ID: id, Tool: "Write", Title: title, Input: []byte(`{"file_path":"` + path + `","content":"x"}`),
		Changes: []cli.FileChanged{{Path: path, Kind: cli.FileAdded, Diff: "@@ -0,0 +1 @@\n+x\n"}},
	}
}
