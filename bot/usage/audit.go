package usage

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Limits of the page of /audit: the age and the number of entries, and the length of lines.
const (
	auditBack = 30 * 24 * time.Hour
	auditMost = 400
	auditLine = 160 // maximum length of a line in characters
)

// Audit handles "/audit". It lists recent approvals and denials of users, changes of settings, and actions of agents
// that needed no approval.
func (s *Screen) Audit(ctx context.Context, by orchestrator.Press, _ string) (tgapi.Page, error) {
	return s.audit(ctx, by, 0)
}

func (s *Screen) audit(ctx context.Context, by orchestrator.Press, page int) (tgapi.Page, error) {
	p := s.Lang.Of(by.Conversation.Chat)
	all, err := s.Store.AuditSince(ctx, s.Now().Add(-auditBack), auditMost)
	if err != nil {
		return tgapi.Page{}, err
	}
	var here []orchestrator.AuditEntry
	for _, e := range all {
		if by.May(orchestrator.SeeAll) || e.Conversation == by.Conversation {
			here = append(here, e)
		}
	}
	if len(here) == 0 {
		return tgapi.Page{Text: p.Text("usage.audit-nothing")}, nil
	}
	from, to, pager := tgapi.Paged(p, page, len(here), func(page int) string {
		return button("", fmt.Sprintf("%s:%d", auditPage, page)).Data
	})
	lines := []string{p.Text("usage.audit")}
	for _, e := range here[from:to] {
		lines = append(lines, "", s.entry(p, e, by))
	}
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: pager}, nil
}

// happened contains the texts for all kinds of entries, except for entries about scheduled jobs and users; see done.
var happened = map[orchestrator.AuditKind]lang.Key{
	orchestrator.AuditAllowed: "usage.audit-allowed", orchestrator.AuditDenied: "usage.audit-denied",
	orchestrator.AuditAnswered: "usage.audit-answered",
	orchestrator.AuditExpired:  "usage.audit-expired", orchestrator.AuditWithdrawn: "usage.audit-withdrawn",
	orchestrator.AuditChanged: "usage.audit-changed",
	orchestrator.AuditRuled:   "usage.audit-ran", orchestrator.AuditAccepted: "usage.audit-ran",
	orchestrator.AuditRan:    "usage.audit-ran",
	orchestrator.AuditCalled: "usage.audit-ran",
	orchestrator.AuditRule:   "usage.audit-rule", orchestrator.AuditRevoked: "usage.audit-revoked",
	orchestrator.AuditMode:      "usage.audit-mode",
	orchestrator.AuditDirectory: "usage.audit-directory",
}

// done contains the texts for entries about scheduled jobs and users. The first key is the kind of the entry. The
// second key is AuditEntry.Tool, which contains the name of the change.
var done = map[orchestrator.AuditKind]map[string]lang.Key{
	orchestrator.AuditJob: {
		"added": "usage.audit-job-added", "changed": "usage.audit-job-changed", "paused": "usage.audit-job-paused",
		"resumed": "usage.audit-job-resumed", "ran": "usage.audit-job-ran", "deleted": "usage.audit-job-deleted",
	},
	orchestrator.AuditUser: {
		"invite": "usage.audit-user-invited", "join": "usage.audit-user-joined", "role": "usage.audit-user-role",
		"remove": "usage.audit-user-removed",
	},
}

// roles contains the names of the roles that occur in entries about users.
var roles = map[string]lang.Key{
	string(orchestrator.RoleOwner): "users.owner", string(orchestrator.RoleUser): "users.user",
	string(orchestrator.RoleViewer): "users.viewer",
}

func (s *Screen) entry(p lang.Printer, e orchestrator.AuditEntry, by orchestrator.Press) string {
	key, of := happened[e.What], render.ToolName(p, e.Tool)+" "+e.Title
	if verbs := done[e.What]; verbs != nil {
		key, of = verbs[e.Tool], e.Title
	}
	if e.What == orchestrator.AuditUser {
		words := strings.Split(of, ", ")
		for i, word := range words {
			if role, ok := roles[word]; ok {
				words[i] = p.Text(role)
			} else if id, err := strconv.ParseInt(word, 10, 64); err == nil {
				words[i] = cmp.Or(s.Names.User(orchestrator.PersonID(id)), word)
			}
		}
		of = p.List(words...)
	}
	if e.What == orchestrator.AuditMode {
		of = modeText(p, e.Title)
	}
	line := p.Moment(e.At.Local()) + " " + p.Text(key)
	switch e.By {
	case 0:
	case by.Person:
		line += " " + p.Text("usage.audit-by-you")
	default:
		line += " " + p.Text("usage.audit-by", s.user(p, strconv.FormatInt(int64(e.By), 10)))
	}
	if e.Conversation != by.Conversation {
		line += " " + p.Text("usage.audit-in", s.Names.Chat(e.Conversation))
	}
	for _, more := range append([]string{short(of)}, grounds(p, e)...) {
		if more != "" {
			line += "\n    " + more
		}
	}
	return line
}

// modeText returns the text for the permission mode in an entry. The mode can be followed by a Go duration, for example
// "bypass 1h0m0s". modeText translates the duration for users.
func modeText(p lang.Printer, mode string) string {
	name, lasts, _ := strings.Cut(mode, " ")
	if d, err := time.ParseDuration(lasts); err == nil {
		return name + " " + p.Span(d)
	}
	return mode
}

// grounds explains why an entry's action was allowed or denied: the rule, the user's reason, or an error. If the entry
// contains a reason that ductor wrote for an agent, grounds returns a text for users instead.
func grounds(p lang.Printer, e orchestrator.AuditEntry) (all []string) {
	rule, reason := short(render.Rule(p, e.Rule)), short(e.Reason)
	switch {
	case rule == "":
	case e.What == orchestrator.AuditRan, e.Rule == orchestrator.RuledByMode:
		all = append(all, p.Text("usage.audit-in-mode", rule))
	case e.What == orchestrator.AuditDenied && e.By == 0:
		all = append(all, p.Text("usage.audit-not-listed"))
	default:
		all = append(all, p.Text("usage.audit-by-rule", rule))
	}
	switch {
	case reason == "":
	case e.What == orchestrator.AuditRan, e.What == orchestrator.AuditCalled:
		all = append(all, p.Text("usage.audit-error", reason))
	case e.What == orchestrator.AuditJob:
		all = append(all, p.Text("usage.audit-when", reason))
	case e.What == orchestrator.AuditMode && e.Reason == orchestrator.AuditElsewhere:
		all = append(all, p.Text("usage.audit-elsewhere"))
	case e.What == orchestrator.AuditMode:
		all = append(all, p.Text("usage.audit-bypass-over"))
	case e.By != 0:
		all = append(all, p.Text("usage.audit-why", reason))
	case e.What == orchestrator.AuditDenied && rule == "":
		all = append(all, p.Text("usage.audit-too-many"))
	}
	return all
}

func short(s string) string { return render.Cut(render.OneLine(strings.TrimSpace(s)), auditLine) }
