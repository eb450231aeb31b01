package judge

import (
	"time"

	"ductor/test/ordeal/scenario"
)

const oneShotClaude = "set agents.claude.mode \"one-shot\"\n"

const costly = "set budget.day \"0.05\"\nowner says p1: cost 5\nowner says p2: run\nann says p3: run\n"

func verdictsOfBudgets() []verdict {
	return []verdict{
		{"a budget that is spent", costly, "budget", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Done, "p1", "")
			s.says("owner", ownerChat, "p2")
			s.agent(Got, "p2", "")
		}},
		{"a budget and an agent that names no costs", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Done, "p1", "")
			s.Agents[0].Agent = "codex"
			s.says("owner", ownerChat, "p2")
			s.agent(Got, "p2", "")
		}},
		{"a budget of another day", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Done, "p1", "")
			s.now = s.now.Add(24 * time.Hour)
			s.says("owner", ownerChat, "p2")
			s.agent(Got, "p2", "")
		}},
		{"a budget that the same conversation spent at the same moment", costly, "budget", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "p2")
			s.agent(Done, "p1", "")
			s.agent(Got, "p2", "")
			s.Agents[1].At = s.Agents[0].At
		}},
		{"a budget and a message that joined the turn that spent it", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "/queue steer")
			s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "p2")
			s.agent(Done, "p1", "")
			s.agent(Got, "p2", "")
			s.says("ann", annChat, "p3")
			s.agent(Got, "p3", "") // the turn of p1 and p2 has not ended
			s.agent(Done, "p2", "")
		}},
		{"a budget that a turn with two messages spent", costly, "budget", func(s *stage) {
			s.says("owner", ownerChat, "/queue steer")
			s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "p2")
			s.agent(Done, "p1", "")
			s.agent(Got, "p2", "")
			s.agent(Done, "p2", "")
			s.now = s.now.Add(10 * time.Second)
			s.says("ann", annChat, "p3")
			s.agent(Got, "p3", "")
		}},
		{"a budget that was spent in between", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "p2")
			s.agent(Got, "p2", "")
			s.agent(Done, "p1", "")
		}},
	}
}

func verdictsOfUndoneBudgets() []verdict {
	return []verdict{
		{"a budget that was spent just before a power failure", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Got, "p1", "")
			s.agent(Done, "p1", "")
			s.Agents[1].At = s.Agents[0].At
			s.stops(scenario.Power)
			s.Stops[0].At = s.Agents[0].At
			s.agent(Got, "p1", "")
		}},
		{"a budget that a turn from before a power failure spent", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Got, "p1", "")
			s.stops(scenario.Power)
			s.Stops[0].At = s.Agents[0].At
			s.agent(Done, "p1", "")
			s.Agents[1].At = s.Agents[0].At.Add(time.Millisecond)
			s.agent(Got, "p1", "")
		}},
		{"a budget that was spent just before a crash", costly, "budget", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Got, "p1", "")
			s.agent(Done, "p1", "")
			s.stops(scenario.Crash)
			s.agent(Got, "p1", "")
		}},
	}
}

func verdictsOfSharedBudgets() []verdict {
	return []verdict{
		{"a budget that another conversation spent while ductor was down", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("ann", annChat, "p2")
			s.stops(scenario.Restart)
			s.agent(Done, "p1", "")
			s.Agents[0].At = s.Stops[0].At
			s.agent(Got, "p2", "")
			s.Agents[1].At = s.Stops[0].Up
		}},
		{"a budget that another conversation spent before ductor was down", costly, "budget", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("ann", annChat, "p2")
			s.agent(Done, "p1", "")
			s.stops(scenario.Restart)
			s.now = s.now.Add(10 * time.Second)
			s.agent(Got, "p2", "")
		}},
		{"a budget that another conversation spent while the agent started", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("ann", annChat, "p2")
			s.agent(Done, "p1", "")
			s.agent(Got, "p2", "")
		}},
		{"a budget that another conversation spent before the prompt came", costly, "budget", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Done, "p1", "")
			s.pass()
			s.says("ann", annChat, "p2")
			s.agent(Got, "p2", "")
		}},
		{"a budget that another conversation spent before the previous turn ended", costly, "budget", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("ann", annChat, "p2")
			s.says("ann", annChat, "p3")
			s.agent(Done, "p1", "")
			s.pass()
			s.agent(Done, "p2", "")
			s.agent(Got, "p3", "")
		}},
		{"a budget that a process spent just before its end", oneShotClaude + costly, "", spentBefore(2 * time.Second)},
		{"a budget that a process spent long before", oneShotClaude + costly, "budget", spentBefore(4 * time.Second)},
		{"a budget that a turn of a lasting process spent", costly, "budget", spentBefore(2 * time.Second)},
		{"a budget that another conversation spent when the previous turn ended", costly, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("ann", annChat, "p2")
			s.says("ann", annChat, "p3")
			s.agent(Done, "p1", "")
			s.agent(Done, "p2", "")
			s.agent(Got, "p3", "")
		}},
	}
}

// spentBefore returns evidence of a conversation that starts a turn some time after another one spent the budget.
func spentBefore(pause time.Duration) func(s *stage) {
	return func(s *stage) {
		s.says("owner", ownerChat, "p1")
		s.says("ann", annChat, "p2")
		s.says("ann", annChat, "p3")
		s.agent(Done, "p1", "")
		s.agent(Done, "p2", "")
		s.agent(Got, "p3", "")
		s.Agents[1].At = s.Agents[0].At.Add(pause)
		s.Agents[2].At = s.Agents[1].At
	}
}
