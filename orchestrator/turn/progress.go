package turn

import (
	"maps"
	"slices"

	"ductor/cli"
)

// progress records the actions of the agent in the turn. They decide whether the turn may run again.
type progress struct {
	ran      bool                          // the agent wrote text, used a tool or asked a user
	tools    map[cli.ToolID]bool           // started tools; the value is false if the tool waits for permission
	asks     map[cli.ApprovalID]cli.ToolID // the tool of each permission request that no user has allowed yet
	replaced []cli.Agent                   // agents that failed, so that another agent took over
	limits   cli.AccountLimits
}

func newProgress() progress {
	return progress{tools: map[cli.ToolID]bool{}, asks: map[cli.ApprovalID]cli.ToolID{}}
}

func (p *progress) observe(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.TextDelta:
		p.ran = p.ran || ev.Text != ""
	case cli.ToolStarted:
		p.ran = true
		p.tools[ev.ID] = !slices.Contains(slices.Collect(maps.Values(p.asks)), ev.ID)
	case cli.ToolEnded:
		p.toolRan(ev.ID, ev.Err == "" || ev.ExitCode != nil)
	case cli.ApprovalAsked:
		p.ran = true
		p.asks[ev.ID] = ev.Started
		if _, started := p.tools[ev.Started]; started {
			p.tools[ev.Started] = false
		}
	case cli.ApprovalWithdrawn:
		p.toolRan(p.asks[ev.ID], ev.Allowed)
		if ev.Allowed {
			delete(p.asks, ev.ID)
		}
	case cli.FileChanged, cli.QuestionAsked:
		p.ran = true
	case cli.LimitsReported:
		p.limits = ev.AccountLimits
	case cli.Substituted:
		p.replaced = append(p.replaced, ev.Why.Agent)
	}
}

func (p *progress) toolRan(id cli.ToolID, ran bool) {
	if before, started := p.tools[id]; started {
		p.tools[id] = before || ran
	}
}

func (p *progress) toolsThatRan() (n int) {
	for _, ran := range p.tools {
		if ran {
			n++
		}
	}
	return n
}
