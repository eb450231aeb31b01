package usage

import (
	"strings"
	"testing"
	"time"

	"ductor/lang"
	"ductor/orchestrator"
)

// An entry says in the language of the chat what happened, and what decided is told apart from what became of it.
func TestEntriesOfTheAudit(t *testing.T) {
	here := orchestrator.ConversationID{Chat: 7}
	at := time.Date(2026, 11, 27, 10, 7, 0, 0, time.Local)
	for _, tt := range []struct {
		e    orchestrator.AuditEntry
		want string // in German, without the moment
	}{
		{orchestrator.AuditEntry{What: orchestrator.AuditRan, Tool: "Bash", Title: "go vet", Rule: "ask", Reason: "exit 1"},
			"▶️ lief ohne Rückfrage\n    Bash go vet\n    Rechte: ask\n    Fehler: exit 1"},
		{orchestrator.AuditEntry{What: orchestrator.AuditRuled, Tool: "Bash", Title: "go vet", Rule: "Bash(go vet:*)"},
			"▶️ lief ohne Rückfrage\n    Bash go vet\n    Regel: Bash(go vet:*)"},
		{orchestrator.AuditEntry{What: orchestrator.AuditAccepted, Tool: "Edit", Title: "a.go", Rule: orchestrator.RuledByMode},
			"▶️ lief ohne Rückfrage\n    Edit a.go\n    Rechte: accept-edits"},
		{orchestrator.AuditEntry{What: orchestrator.AuditCalled, Tool: "ductor.send_file", Title: "a.go", Reason: "no such file"},
			"▶️ lief ohne Rückfrage\n    ductor.send_file a.go\n    Fehler: no such file"},
		{orchestrator.AuditEntry{What: orchestrator.AuditDenied, By: 7, Tool: "Bash", Title: "rm x", Reason: "use mv"},
			"⛔ abgelehnt von 7\n    Bash rm x\n    wegen: use mv"},
		{orchestrator.AuditEntry{What: orchestrator.AuditDenied, Tool: "Bash", Rule: orchestrator.RuledByTools, Reason: "This tool is not among those that may be used here."},
			"⛔ abgelehnt\n    Bash\n    die Liste der Werkzeuge lässt es nicht zu"},
		{orchestrator.AuditEntry{What: orchestrator.AuditDenied, Tool: "Bash", Reason: "Too many requests wait for a decision."},
			"⛔ abgelehnt\n    Bash\n    zu viele Anfragen haben gewartet"},
		{orchestrator.AuditEntry{What: orchestrator.AuditExpired, Tool: "Bash", Title: "ls", Reason: "No user decided in time, so it was denied."},
			"⌛ abgelaufen\n    Bash ls"},
		{orchestrator.AuditEntry{What: orchestrator.AuditRule, By: 7, Tool: "Bash", Rule: "Bash(ls:*)"},
			"⚙️ Regel gemacht von 7\n    Bash\n    Regel: Bash(ls:*)"},
		{orchestrator.AuditEntry{What: orchestrator.AuditMode, By: 7, Title: "bypass 1h0m0s"}, "⚙️ Rechte geändert von 7\n    bypass 1h0m0s"},
		{orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: "ask", Reason: orchestrator.AuditElsewhere}, "⚙️ Rechte geändert\n    ask\n    es war für einen anderen Ort gewählt"},
		{orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: "ask", Reason: "expired"}, "⚙️ Rechte geändert\n    ask\n    bypass ist zu Ende"},
		{orchestrator.AuditEntry{What: orchestrator.AuditJob, By: 7, Tool: "added", Title: "news", Reason: "0 9 * * *"},
			"⚙️ Job angelegt von 7\n    news\n    wann: 0 9 * * *"},
		{orchestrator.AuditEntry{What: orchestrator.AuditUser, By: 7, Tool: "role", Title: "8, viewer"}, "⚙️ Rolle eines Nutzers geändert von 7\n    8, Zuschauer"},
	} {
		tt.e.At, tt.e.Conversation = at, here
		_, got, _ := strings.Cut(entry(lang.Language("de").Printer(), tt.e, here), "10:07 ")
		if got != tt.want {
			t.Errorf("%+v\n is %q,\nwant %q", tt.e, got, tt.want)
		}
	}
}
