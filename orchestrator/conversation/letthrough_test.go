package conversation_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// In accept-edits an edit goes through without a user and is audited; what is more than an edit is asked for, and so is
// every request that names one of ductor's own files.
func TestAcceptedEdits(t *testing.T) {
	own := ""
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) {
		o.Permission = cli.AcceptEdits
		own = filepath.Join(o.Dir, "config.toml")
		o.Protected = []string{cli.RealPath(own)}
	})
	edit := func(id cli.ApprovalID, input string) cli.ApprovalAsked {
		return cli.ApprovalAsked{ID: id, Tool: "Write", Title: string(id), Input: []byte(input)}
	}
	missing, wider := edit("missing", `{"file_path":"a.txt"}`), edit("wider", `{"file_path":"a.txt"}`)
	missing.Missing = "the changes"
	wider.Fields = []cli.Field{{Name: "scope", Value: "all", Weight: cli.WiderField}}
	fetched := edit("named", `{"url":"x","to":["`+own+`"]}`)
	fetched.Tool = "mcp__files__fetch"
	for _, tc := range []struct {
		ask     cli.ApprovalAsked
		audited orchestrator.AuditKind
	}{
		{edit("inside", `{"file_path":"a.txt","content":"x"}`), orchestrator.AuditAccepted},
		{edit("hidden", `{"file_path":".env","content":"x"}`), orchestrator.AuditAllowed},
		{edit("own", `{"file_path":"config.toml","content":"x"}`), orchestrator.AuditAllowed},
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
