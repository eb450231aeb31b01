package orchestrator

import "ductor/cli"

// tool audits a tool that ran, when it has ended: until then the agent may still ask for it. The store passes over what
// was asked for, and what is told once more after a restart.
func (a *approvals) tool(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.ToolStarted:
		ev.Title = a.hide.known().String(ev.Title)
		a.tools[ev.ID] = ev
	case cli.ToolEnded:
		begun, known := a.tools[ev.ID]
		delete(a.tools, ev.ID)
		if !known {
			return
		}
		a.o.audit(a.keep, AuditEntry{
			What: AuditRan, Conversation: a.turn.Prompt.Conversation, Turn: a.turn.ID, Call: ev.ID, Agent: a.turn.Agent,
			Tool: begun.Name, Title: begun.Title, Rule: string(a.mode), Reason: cli.Shorten(a.hide.known().String(ev.Err), toolReasonBytes),
		})
	}
}

// toolReasonBytes is how much the audit keeps of why a tool failed.
const toolReasonBytes = 200

func isTool(ev cli.Event) bool {
	switch ev.(type) {
	case cli.ToolStarted, cli.ToolEnded:
		return true
	}
	return false
}
