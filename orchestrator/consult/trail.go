package consult

import (
	"context"

	"ductor/cli"
	"ductor/orchestrator"
)

// trail audits the tools that an agent runs beside those of a conversation's own agent. The agent's stream alone uses it.
type trail struct {
	e    *Engine
	of   orchestrator.AuditEntry // has what all entries share; Call is the turn that the agent runs
	hide func(text string) string

	tools map[cli.ToolID]cli.ToolStarted // that run
}

func (e *Engine) trail(of orchestrator.AuditEntry, hide func(string) string) *trail {
	of.What = orchestrator.AuditRan
	return &trail{e: e, of: of, hide: hide, tools: map[cli.ToolID]cli.ToolStarted{}}
}

// call names a tool apart from those of the conversation's own agent.
func (t *trail) call(id cli.ToolID) cli.ToolID { return t.of.Call + "/" + id }

// mostReason is how much the audit keeps of why a tool failed, in bytes.
const mostReason = 200

// take records a tool when it has ended. The store passes over what was asked for.
func (t *trail) take(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.ToolStarted:
		t.tools[ev.ID] = ev
	case cli.ToolEnded:
		began, known := t.tools[ev.ID]
		if !known {
			return
		}
		delete(t.tools, ev.ID)
		entry := t.of
		entry.At, entry.Call, entry.Tool, entry.Title = t.e.opts.Now(), t.call(ev.ID), began.Name, t.hide(began.Title)
		entry.Reason = cli.Shorten(t.hide(ev.Err), mostReason)
		if err := t.e.opts.Works.Audit(context.Background(), entry); err != nil { // it has happened already
			t.e.opts.Logger.Error("record the audit", "what", entry.What, "err", err)
		}
	}
}
