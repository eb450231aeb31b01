package orchestrator

import (
	"slices"
	"testing"

	"ductor/cli"
)

func TestAgentsOfASession(t *testing.T) {
	entry := func(agent cli.Agent, kind EntryKind, answer string) Turn {
		return Turn{Agent: agent, Entry: Entry{Kind: kind}, Outcome: Outcome{Text: answer}}
	}
	s := Session{AgentSessions: map[AgentEnv]AgentSession{
		{Agent: "gemini"}: {ID: "g"}, {Agent: "amp"}: {ID: "a"}, {Agent: "claude", Sandbox: "web"}: {ID: "c"},
		{Agent: "copilot", Lane: AsideLane}: {ID: "q"},
	}}
	for _, c := range []struct {
		session Session
		entries []Turn
		want    []cli.Agent
	}{
		{Session{}, nil, nil},
		{s, nil, []cli.Agent{"amp", "claude", "gemini"}},
		{s, []Turn{
			entry("claude", TurnEntry, "one"), entry("codex", TurnEntry, "two"), entry("claude", TurnEntry, "three"),
			entry("gemini", TurnEntry, ""), entry("copilot", ConsultationEntry, "four"), entry("", TurnEntry, "five"),
		}, []cli.Agent{"claude", "codex", "amp", "gemini"}},
	} {
		if got := c.session.Agents(c.entries); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
