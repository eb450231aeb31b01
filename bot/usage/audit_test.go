package usage

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// An entry describes in the chat's language what happened. The text tells decisions apart from their results.
func TestEntriesOfTheAudit(t *testing.T) {
	here := orchestrator.ConversationID{Chat: 7}
	topic, unnamed := orchestrator.ConversationID{Chat: -9, Topic: 5}, orchestrator.ConversationID{Chat: -8}
	screen := &Screen{Names: &tgapi.ChatNames{}}
	screen.Names.LearnUser(7, "Ann")
	screen.Names.Learn(-9, "Family")
	at := time.Date(2026, 11, 27, 10, 7, 0, 0, time.Local)
	for _, tt := range []struct {
		e    orchestrator.AuditEntry
		want string // in German, without the time
	}{
		{orchestrator.AuditEntry{What: orchestrator.AuditRan, Tool: "Bash", Title: "go vet", Rule: "ask", Reason: "exit 1"},
			"▶️ lief ohne Rückfrage\n    Befehl go vet\n    Rechte: ask\n    Fehler: exit 1"},
		{orchestrator.AuditEntry{What: orchestrator.AuditRuled, Tool: "Bash", Title: "go vet", Rule: "Bash(go vet:*)"},
			"▶️ lief ohne Rückfrage\n    Befehl go vet\n    Regel: go vet:*"},
		{orchestrator.AuditEntry{What: orchestrator.AuditAccepted, Tool: "Edit", Title: "a.go", Rule: orchestrator.RuledByMode},
			"▶️ lief ohne Rückfrage\n    Ändern a.go\n    Rechte: accept-edits"},
		{orchestrator.AuditEntry{What: orchestrator.AuditCalled, Tool: "ductor.send_file", Title: "a.go", Reason: "no such file"},
			"▶️ lief ohne Rückfrage\n    📎 Datei a.go\n    Fehler: no such file"},
		{orchestrator.AuditEntry{What: orchestrator.AuditDenied, By: 7, Tool: "Bash", Title: "rm x", Reason: "use mv"},
			"⛔ abgelehnt von Ann\n    Befehl rm x\n    wegen: use mv"},
		{orchestrator.AuditEntry{What: orchestrator.AuditDenied, Tool: "Bash", Rule: orchestrator.RuledByTools, Reason: "This tool is not among those that may be used here."},
			"⛔ abgelehnt\n    Befehl\n    die Liste der Werkzeuge erlaubt es nicht"},
		{orchestrator.AuditEntry{What: orchestrator.AuditDenied, Tool: "Bash", Reason: "Too many requests wait for a decision."},
			"⛔ abgelehnt\n    Befehl\n    zu viele Anfragen haben gewartet"},
		{orchestrator.AuditEntry{What: orchestrator.AuditExpired, Tool: "Bash", Title: "ls", Reason: "No user decided in time, so it was denied."},
			"⌛ abgelaufen\n    Befehl ls"},
		{orchestrator.AuditEntry{What: orchestrator.AuditRule, By: 7, Tool: "Bash", Rule: "Bash(ls:*)"},
			"⚙️ Regel angelegt von Ann\n    Befehl\n    Regel: ls:*"},
		{orchestrator.AuditEntry{What: orchestrator.AuditMode, By: 1, Title: "bypass 1h0m0s"}, "⚙️ Rechte geändert von dir\n    bypass 1 h"},
		{orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: "ask", Reason: orchestrator.AuditElsewhere}, "⚙️ Rechte geändert\n    ask\n    es war für einen anderen Ordner oder eine andere Sandbox gewählt"},
		{orchestrator.AuditEntry{What: orchestrator.AuditMode, Title: "ask", Reason: "expired"}, "⚙️ Rechte geändert\n    ask\n    bypass ist zu Ende"},
		{orchestrator.AuditEntry{What: orchestrator.AuditJob, By: 7, Tool: "added", Title: "news", Reason: "0 9 * * *"},
			"⚙️ Job angelegt von Ann\n    news\n    wann: 0 9 * * *"},
		{orchestrator.AuditEntry{What: orchestrator.AuditUser, By: 7, Tool: "role", Title: "8, viewer"}, "⚙️ Rolle eines Nutzers geändert von Ann\n    8, Zuschauer"},
		{orchestrator.AuditEntry{What: orchestrator.AuditUser, By: 1, Tool: "remove", Title: "7, viewer"},
			"⚙️ Nutzer entfernt von dir\n    Ann, Zuschauer"},
		{orchestrator.AuditEntry{What: orchestrator.AuditExpired, Tool: "Bash", Title: "ls", Conversation: topic},
			"⌛ abgelaufen im Chat Family/5\n    Befehl ls"},
		{orchestrator.AuditEntry{What: orchestrator.AuditExpired, Tool: "Bash", Title: "ls", Conversation: unnamed},
			"⌛ abgelaufen im Chat -8/0\n    Befehl ls"},
	} {
		tt.e.At, tt.e.Conversation = at, cmp.Or(tt.e.Conversation, here)
		_, got, _ := strings.Cut(screen.entry(lang.Language("de").Printer(), tt.e, orchestrator.Press{Conversation: here, Person: 1}), "10:07 ")
		if got != tt.want {
			t.Errorf("%+v\n is %q,\nwant %q", tt.e, got, tt.want)
		}
	}
}
