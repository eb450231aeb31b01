package orchestrator

import "testing"

// The ID of a log-in contains its account and environment, also the default ones. Buttons of older versions contain
// only the agent.
func TestLogInIDs(t *testing.T) {
	for _, of := range []AgentEnv{
		{Agent: "claude"}, {Agent: "claude", Account: "work"}, {Agent: "codex", Sandbox: "web"},
		{Agent: "codex", Account: "work", Sandbox: "web"},
	} {
		if got, whole := of.LogInID().Env(); got != of || !whole {
			t.Errorf("%q is %+v, %v", of.LogInID(), got, whole)
		}
	}
	if got, whole := LogInID("claude").Env(); got != (AgentEnv{Agent: "claude"}) || whole {
		t.Errorf("the older form is %+v, %v", got, whole)
	}
}
