package bot

import (
	"fmt"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// livingLines say which agent process this conversation keeps, and how many there are in all.
func livingLines(id orchestrator.ConversationID, l cli.Living) []string {
	var lines []string
	if s, ok := l.Of(id.Key()); ok {
		line := "Process: " + render.AgentName(lang.Printer{}, s.Agent) + ", " + string(s.Mode)
		if s.PID > 0 {
			line += fmt.Sprintf(", pid %d", s.PID)
		}
		if s.Memory > 0 {
			line += fmt.Sprintf(", %d MB", s.Memory>>20)
		}
		if s.Busy {
			line += ", busy"
		} else {
			line += ", idle"
		}
		lines = append(lines, line)
	}
	if l.MaxProcesses == 0 && l.Processes == 0 {
		return lines
	}
	line := fmt.Sprintf("Agents alive: %d", l.Processes)
	if l.MaxProcesses > 0 {
		line += fmt.Sprintf(" of at most %d", l.MaxProcesses)
	}
	if l.Memory > 0 {
		line += fmt.Sprintf(", %d MB", l.Memory>>20)
	}
	if l.Waiting > 0 {
		line += fmt.Sprintf(", %d waiting for room", l.Waiting)
	}
	return append(lines, line)
}
