package consult

import (
	"context"

	"ductor/cli"
	"ductor/orchestrator"
)

// trail writes the tools of a consulted agent to the audit log. Only the goroutine that reads the agent's output uses
// it.
type trail struct {
	e *Engine
	// template contains the values that all entries share. Its field Call is a unique ID of the consultation.
	template orchestrator.AuditEntry
	hide     func(text string) string

	tools map[cli.ToolID]cli.ToolStarted
}

func (e *Engine) trail(template orchestrator.AuditEntry, hide func(string) string) *trail {
	template.What = orchestrator.AuditRan
	return &trail{e: e, template: template, hide: hide, tools: map[cli.ToolID]cli.ToolStarted{}}
}

// callID returns a unique ID for a tool call. Without the prefix, a consulted agent and the agent of a turn could use
// the same ID.
func (t *trail) callID(id cli.ToolID) cli.ToolID { return t.template.Call + "/" + id }

// mostReason is the maximum length of a tool's error in the audit log, in bytes.
const mostReason = 200

// observe adds a tool call to the audit log when the tool has ended. If the agent asked for permission, the log already
// contains the tool call, and the store skips the entry.
func (t *trail) observe(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.ToolStarted:
		t.tools[ev.ID] = ev
	case cli.ToolChanged:
		t.tools[ev.ID] = ev.ToolStarted
	case cli.ToolEnded:
		began, known := t.tools[ev.ID]
		if !known {
			return
		}
		delete(t.tools, ev.ID)
		entry := t.template
		entry.At, entry.Call, entry.Tool, entry.Title = t.e.opts.Now(), t.callID(ev.ID), began.Name, t.hide(began.Title)
		entry.Reason = cli.Shorten(t.hide(ev.Err), mostReason)
		// Only log an error: the tool has already run.
		if err := t.e.opts.Works.Audit(context.Background(), entry); err != nil {
			t.e.opts.Logger.Error("record the audit", "what", entry.What, "err", err)
		}
	}
}
