package consult

import (
	"context"

	"ductor/cli"
	"ductor/orchestrator"
)

// trail audits the tools of an agent other than the conversation's own agent. Only the goroutine of the agent's stream
// uses it.
type trail struct {
	e    *Engine
	of   orchestrator.AuditEntry // fields that all entries share; Call is the ID of the agent's turn
	hide func(text string) string

	tools map[cli.ToolID]cli.ToolStarted // running tools
}

func (e *Engine) trail(of orchestrator.AuditEntry, hide func(string) string) *trail {
	of.What = orchestrator.AuditRan
	return &trail{e: e, of: of, hide: hide, tools: map[cli.ToolID]cli.ToolStarted{}}
}

// call returns an ID for a tool call that differs from all IDs of the conversation's own agent.
func (t *trail) call(id cli.ToolID) cli.ToolID { return t.of.Call + "/" + id }

// mostReason limits the error text of a failed tool in the audit, in bytes.
const mostReason = 200

// observe records a tool when the tool has ended. The store skips a tool if the agent asked for permission.
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
		entry := t.of
		entry.At, entry.Call, entry.Tool, entry.Title = t.e.opts.Now(), t.call(ev.ID), began.Name, t.hide(began.Title)
		entry.Reason = cli.Shorten(t.hide(ev.Err), mostReason)
		if err := t.e.opts.Works.Audit(context.Background(), entry); err != nil { // the tool has already run
			t.e.opts.Logger.Error("record the audit", "what", entry.What, "err", err)
		}
	}
}
