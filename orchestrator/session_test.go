package orchestrator

import (
	"slices"
	"testing"

	"ductor/cli"
)

// An agent that ran only for one prompt is not the agent to which a session returns.
func TestTheLastChosenAgent(t *testing.T) {
	turn := func(id string, agent cli.Agent, change func(*Turn)) Turn {
		one := Turn{ID: cli.TurnID(id), Agent: agent, Entry: Entry{Account: "work"}}
		one.Outcome.Text = "an answer"
		if change != nil {
			change(&one)
		}
		return one
	}
	claude := turn("a", "claude", nil)
	failed := turn("f", "claude", func(t *Turn) { t.Outcome.Text = "" })
	named := func(t *Turn) { t.Wants.Agent = t.Agent }
	substitute := func(t *Turn) { t.Outcome.Recovery.Replaced = "claude" }
	consultation := func(t *Turn) { t.Entry.Kind = ConsultationEntry }
	again := func(id cli.TurnID) func(*Turn) { return func(t *Turn) { t.Wants.Agent, t.Again = t.Agent, id } }
	for name, c := range map[string]struct {
		entries []Turn
		want    cli.Agent
	}{
		"no entries":         {nil, ""},
		"the newest answer":  {[]Turn{claude, turn("b", "codex", nil)}, "codex"},
		"no answer":          {[]Turn{claude, turn("b", "codex", func(t *Turn) { t.Outcome.Text = "" })}, "claude"},
		"a named agent":      {[]Turn{claude, turn("b", "codex", named)}, "claude"},
		"only a named agent": {[]Turn{turn("b", "codex", named)}, ""},
		"a substitute":       {[]Turn{claude, turn("b", "codex", substitute)}, "claude"},
		"a consultation":     {[]Turn{claude, turn("b", "codex", consultation)}, "claude"},
		"gone on with":       {[]Turn{failed, turn("b", "codex", again("f"))}, "codex"},
		"gone on with twice": {[]Turn{failed, turn("b", "codex", again("f")),
			turn("c", "gemini", again("b"))}, "gemini"},
		"a named agent again": {[]Turn{claude, turn("b", "codex", named), turn("c", "codex", again("b"))}, "claude"},
	} {
		got := LastChosen(c.entries)
		if got.Agent != c.want || c.want != "" && got.Account != "work" {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

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
