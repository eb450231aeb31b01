package main

import (
	"strings"
	"syscall"
	"testing"
)

// agentTable is a table of docs/agents.md with a column for each agent. A test generates it between two marks.
type agentTable struct {
	begin, end, corner string
	rows               []string
	write              bool // writes the table instead of comparing it
}

// check compares the observed cells with the page. It does nothing if a cell is missing, since an agent is not
// installed or only a part of the test ran.
func (a agentTable) check(t testing.TB, agents []string, seen map[string]map[string]string) {
	t.Helper()
	if t.Failed() {
		return
	}
	for _, agent := range agents {
		for _, row := range a.rows {
			if seen[agent][row] == "" {
				t.Logf("docs/agents.md is not compared: %s was not seen at %q", agent, row)
				return
			}
		}
	}
	var b strings.Builder
	b.WriteString(a.begin + "| " + a.corner + " | " + strings.Join(agents, " | ") + " |\n|---|" + strings.Repeat("---|",
		len(agents)) + "\n")
	for _, row := range a.rows {
		b.WriteString("| " + row)
		for _, agent := range agents {
			b.WriteString(" | " + strings.ReplaceAll(seen[agent][row], "|", "\\|"))
		}
		b.WriteString(" |\n")
	}
	checkTable(t, a.begin, a.end, b.String(), a.write)
}

// killAgents kills the agents' processes, as the kernel does when memory runs out.
func (town *town) killAgents() {
	town.t.Helper()
	for _, run := range town.runs() {
		if run.Alive {
			_ = syscall.Kill(run.PID, syscall.SIGKILL)
		}
	}
}
