package approval

import (
	"ductor/cli"
	"ductor/orchestrator"
)

// toolAudit audits the tools that the agent of a turn runs. Only the goroutine of the turn's requests uses it.
type toolAudit struct {
	r     *Requests
	tools map[cli.ToolID]cli.ToolStarted // running tools
}

// take audits a tool once it has ended, because until then the agent may still ask for it. The store skips tools that
// the agent asked for, and tools repeated after a restart. take returns false for an event that is not about a tool.
func (a toolAudit) take(ev cli.Event) bool {
	switch ev := ev.(type) {
	case cli.ToolStarted:
		ev.Title = a.r.turn.Known().String(ev.Title)
		a.tools[ev.ID] = ev
	case cli.ToolEnded:
		if begun, known := a.tools[ev.ID]; known {
			delete(a.tools, ev.ID)
			a.r.auditTool(begun, ev)
		}
	default:
		return false
	}
	return true
}

func (r *Requests) auditTool(begun cli.ToolStarted, ended cli.ToolEnded) {
	r.mu.Lock()
	mode := r.turn.Mode
	r.mu.Unlock()
	t := r.turn.Turn
	entry := orchestrator.AuditEntry{
		At: r.s.opts.Now(), What: orchestrator.AuditRan, Conversation: t.Prompt.Conversation, Turn: t.ID,
		Call: ended.ID, Agent: t.Agent,
		Tool: begun.Name, Title: begun.Title, Rule: string(mode),
		Reason: cli.Shorten(r.turn.Known().String(ended.Err), toolReasonBytes),
	}
	if err := r.s.opts.Store.RecordAudit(r.keep(), entry); err != nil { // the tool has already run
		r.log.Error("record the audit", "what", entry.What, "err", err)
	}
}

// toolReasonBytes limits the error text of a failed tool in the audit.
const toolReasonBytes = 200
