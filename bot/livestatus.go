package bot

import (
	"strconv"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// livingLines returns lines about the agent process of this conversation, and about the number of processes in all
// conversations.
func livingLines(p lang.Printer, id orchestrator.ConversationID, l cli.Living) []string {
	var lines []string
	if s, ok := l.Of(id.Key()); ok {
		parts := []string{p.Text("status.process", render.AgentName(p, s.Agent)), string(s.Mode)}
		if s.PID > 0 {
			parts = append(parts, p.Text("status.process-id", strconv.Itoa(s.PID)))
		}
		if s.Memory > 0 {
			parts = append(parts, p.Text("status.memory", s.Memory>>20))
		}
		doing := lang.Key("status.process-idle")
		if s.Busy {
			doing = "status.process-busy"
		}
		lines = append(lines, p.List(append(parts, p.Text(doing))...))
	}
	for _, why := range l.Resting {
		lines = append(lines, why.Sentence(p))
	}
	if l.MaxProcesses == 0 && l.Processes == 0 {
		return lines
	}
	parts := []string{p.Text("status.processes", l.Processes)}
	if l.MaxProcesses > 0 {
		parts[0] = p.Text("status.processes-of", l.Processes, l.MaxProcesses)
	}
	if l.Memory > 0 {
		parts = append(parts, p.Text("status.memory", l.Memory>>20))
	}
	if l.Waiting > 0 {
		parts = append(parts, p.Text("status.processes-waiting", l.Waiting))
	}
	return append(lines, p.List(parts...))
}
