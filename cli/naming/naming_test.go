package naming

import (
	"slices"
	"testing"

	"ductor/cli"
)

func fixture() Names {
	ok := cli.Auth{State: cli.Authenticated}
	efforts := []cli.Effort{"low", "medium", "high"}
	return Names{
		Current: "claude",
		Aliases: map[string]Alias{
			"fast": {Use: "claude/sonnet"},
			"deep": {Use: "codex/gpt-5 high"}, "broken": {Use: "llama"},
			"away": {Use: "copilot/gpt-5 high"},
		},
		Entries: []cli.MenuEntry{
			{Agent: "claude", Auth: ok, Models: []cli.Model{
				{ID: "opus", Name: "Opus 4", Resolved: "claude-opus-4-8[1m]", Default: true,
					Efforts: []cli.Effort{"low", "high"}},
				{ID: "sonnet", Name: "Sonnet 4", Resolved: "claude-sonnet-5"},
				{ID: "sonnet[1m]", Name: "Sonnet 4 with 1M"},
			}},
			{Agent: "codex", Auth: ok, Models: []cli.Model{{ID: "gpt-5", Efforts: efforts, Default: true},
				{ID: "gpt-5-mini", Efforts: efforts}}},
			{Agent: "gemini", Auth: ok, Models: []cli.Model{{ID: "gemini-3-pro"}}},
			{Agent: "copilot", Auth: cli.Auth{State: cli.NotFound}},
		},
	}
}

func TestFind(t *testing.T) {
	for _, tc := range []struct {
		name    string
		want    Choice
		problem ProblemKind
		wrong   bool
	}{
		{name: "opus", want: Choice{"claude", "opus", ""}},
		{name: "OPUS high", want: Choice{"claude", "opus", "high"}},
		{name: "claude/opus low", want: Choice{"claude", "opus", "low"}},
		{name: "claude opus low", want: Choice{"claude", "opus", "low"}},
		{name: "sonnet", want: Choice{"claude", "sonnet", ""}},
		{name: "1m", want: Choice{"claude", "sonnet[1m]", ""}},
		{name: "codex", want: Choice{"codex", "", ""}},
		{name: "codex high", want: Choice{"codex", "", "high"}},
		{name: "codex default high", want: Choice{"codex", "", "high"}},
		{name: "default", want: Choice{"claude", "", ""}},
		{name: "Default high", want: Choice{"claude", "", "high"}},
		{name: "codex/gpt-5 medium", want: Choice{"codex", "gpt-5", "medium"}},
		{name: "fast", want: Choice{"claude", "sonnet", ""}},
		{name: "Deep", want: Choice{"codex", "gpt-5", "high"}},
		{name: "deep low", want: Choice{"codex", "gpt-5", "low"}},
		{name: "gemini high", wrong: true, problem: NoEfforts},
		{name: "codex huge", wrong: true, problem: Unknown},
		{name: "gpt", wrong: true, problem: Ambiguous},
		{name: "opus medium", wrong: true, problem: UnknownEffort},
		{name: "sonnet high", wrong: true, problem: NoEfforts},
		{name: "opus low high", wrong: true, problem: TooManyWords},
		{name: "llama", wrong: true, problem: Unknown},
		{name: "broken", wrong: true, problem: Unknown},
		{name: "copilot", wrong: true, problem: Unusable},
		{name: "", wrong: true, problem: Unknown},
	} {
		got, problem := fixture().Find(tc.name)
		switch {
		case tc.wrong && (problem == nil || problem.Kind != tc.problem):
			t.Errorf("%q: %+v, %+v", tc.name, got, problem)
		case !tc.wrong && (problem != nil || got != tc.want):
			t.Errorf("%q: %+v, %+v; want %+v", tc.name, got, problem, tc.want)
		}
	}
}

// The default of the current agent is a model with this name, if the agent lists one. Models of other agents do not count.
func TestTheDefaultOfTheCurrentAgent(t *testing.T) {
	n := fixture()
	n.Entries[0].Models = append(n.Entries[0].Models, cli.Model{ID: "default", Name: "Default (recommended)"})
	for current, want := range map[cli.Agent]Choice{
		"claude": {"claude", "default", ""}, "codex": {"codex", "", ""}, "gemini": {"gemini", "", ""},
	} {
		n.Current = current
		if got, problem := n.Find("default"); problem != nil || got != want {
			t.Errorf("%s: %+v, %+v; want %+v", current, got, problem, want)
		}
	}
	n.Entries[1] = cli.MenuEntry{Agent: "codex", Auth: n.Entries[1].Auth, Err: cli.ErrLoading}
	n.Current = "codex"
	if got, problem := n.Find("default"); problem == nil || problem.Kind != Loading {
		t.Errorf("before the agent has listed its models: %+v, %+v", got, problem)
	}
}

// TestExactIDs tests that any exact ID behind an agent's name works, and that Find offers models for a mistyped name.
func TestExactIDs(t *testing.T) {
	choice := func(agent cli.Agent, model cli.ModelID) Choice { return Choice{Agent: agent, Model: model} }
	for _, tc := range []struct {
		name  string
		want  Choice
		meant []Choice
	}{
		// Claude reports that its models stand for these.
		{name: "claude-opus-4-8", want: choice("claude", "claude-opus-4-8")},
		{name: "claude-opus-4-8[1m] high", want: Choice{"claude", "claude-opus-4-8[1m]", "high"}},
		{name: "claude/claude-sonnet-5", want: choice("claude", "claude-sonnet-5")},
		// No agent lists these.
		{name: "claude-opus-4-7", want: choice("claude", "claude-opus-4-7")},
		{name: "claude claude-haiku-4-5 low", want: Choice{"claude", "claude-haiku-4-5", "low"}},
		{name: "codex/gpt-9", want: choice("codex", "gpt-9")},
		{name: "gpt-9-codex", want: choice("codex", "gpt-9-codex")},
		{name: "gemini/auto", want: choice("gemini", "auto")},
		{name: "old", want: choice("claude", "claude-opus-3-9")},
		// These are probably mistyped.
		{name: "opsu", meant: []Choice{choice("claude", "opus")}},
		{name: "claude/opusplan", meant: []Choice{choice("claude", "opus"), choice("claude", "opusplan")}},
		{name: "codex/gtp-5", meant: []Choice{choice("codex", "gpt-5"), choice("codex", "gtp-5")}},
		{name: "depe", meant: []Choice{{"codex", "gpt-5", "high"}}},
		{name: "lama", meant: []Choice{choice("claude", "sonnet")}},
		{name: "gpt", meant: []Choice{choice("codex", "gpt-5"), choice("codex", "gpt-5-mini")}},
	} {
		n := fixture()
		n.Aliases["old"] = Alias{Use: "claude/claude-opus-3-9"}
		n.Aliases["llama"] = Alias{Use: "claude/sonnet"}
		got, problem := n.Find(tc.name)
		switch {
		case tc.meant == nil && (problem != nil || got != tc.want):
			t.Errorf("%q: %+v, %+v; want %+v", tc.name, got, problem, tc.want)
		case tc.meant != nil && (problem == nil || !slices.Equal(problem.Meant, tc.meant)):
			t.Errorf("%q: %+v, %+v; may mean %+v", tc.name, got, problem, tc.meant)
		}
	}
	broken := fixture()
	broken.Aliases = map[string]Alias{"lama": {Use: "llama"}, "llaama": {Use: "lama"}} // they lead to each other
	if _, problem := broken.Find("lama"); problem == nil || len(problem.Meant) > 0 {
		t.Errorf("an alias without a model means %+v", problem)
	}
}

// TestFindWhileAgentsAreAsked tests that Find returns a result at once if models that are still loading cannot change
// it. Otherwise the problem names the agent.
func TestFindWhileAgentsAreAsked(t *testing.T) {
	names := func(loading ...cli.Agent) Names {
		n := fixture()
		for i, e := range n.Entries {
			if slices.Contains(loading, e.Agent) {
				n.Entries[i] = cli.MenuEntry{Agent: e.Agent, Auth: e.Auth, Err: cli.ErrLoading}
			}
		}
		return n
	}
	for _, tc := range []struct {
		loading []cli.Agent
		name    string
		want    Choice
		takes   cli.Agent
		settled bool
	}{
		{loading: []cli.Agent{"codex"}, name: "codex", want: Choice{Agent: "codex"}, settled: true},
		{loading: []cli.Agent{"codex"}, name: "codex default", want: Choice{Agent: "codex"}, settled: true},
		{loading: []cli.Agent{"codex"}, name: "Deep", takes: "codex"},
		{loading: []cli.Agent{"codex"}, name: "codex high", takes: "codex"},
		// It is also unknown whether it can be used.
		{loading: []cli.Agent{"copilot"}, name: "copilot", takes: "copilot"},
		{loading: []cli.Agent{"codex", "gemini"}, name: "claude/opu", want: Choice{"claude", "opus", ""},
			settled: true},
		{loading: []cli.Agent{"codex"}, name: "opu", want: Choice{"claude", "opus", ""}, settled: true},
		{loading: []cli.Agent{"codex"}, name: "gemini-3-pro", want: Choice{"gemini", "gemini-3-pro", ""},
			settled: true},
		{loading: []cli.Agent{"codex"}, name: "3-pro"},
		{loading: []cli.Agent{"codex"}, name: "llama"},
		{loading: []cli.Agent{"claude"}, name: "gpt-5"}, // Claude's own models would have priority
	} {
		got, problem := names(tc.loading...).Find(tc.name)
		switch {
		case tc.settled && (problem != nil || got != tc.want):
			t.Errorf("%q: %+v, %+v; want %+v", tc.name, got, problem, tc.want)
		case !tc.settled && (problem == nil || problem.Kind != Loading || problem.Agent != tc.takes):
			t.Errorf("%q: %+v, %+v; it takes %q", tc.name, got, problem, tc.takes)
		}
	}
}

// TestExactly tests that the word before a prompt must be a full name. Otherwise it is part of the prompt.
func TestExactly(t *testing.T) {
	for name, want := range map[string]Choice{
		"codex": {"codex", "", ""}, "fast": {"claude", "sonnet", ""}, "Opus": {"claude", "opus", ""},
		"claude/opus": {"claude", "opus", ""},
		"gpt-5":       {"codex", "gpt-5", ""},
		"gpt-9":       {}, // it is unknown whether this is a model
		"1m":          {}, "son": {}, "types/node": {}, "copilot": {}, "claude/op": {}, "": {}, "everyone": {},

		"claude-opus-4-8": {"claude", "claude-opus-4-8", ""}, "claude/opus-4-1": {"claude", "opus-4-1", ""},

		"codex high": {},
	} {
		if got, ok := fixture().Exactly(name); ok != (want != Choice{}) || ok && got != want {
			t.Errorf("%q: %+v, %v", name, got, ok)
		}
	}
}

// A message to an agent that cannot be used went to the agent of the chat, as text.
func TestAddressed(t *testing.T) {
	for name, want := range map[string]Choice{
		"copilot": {"copilot", "", ""}, "Copilot/gpt-5": {"copilot", "gpt-5", ""},
		"away": {"copilot", "gpt-5", "high"}, "opus": {"claude", "opus", ""},
		"copilots": {}, "types/node": {}, "everyone": {},
	} {
		if got, ok := fixture().Addressed(name); ok != (want != Choice{}) || ok && got != want {
			t.Errorf("%q: %+v, %v", name, got, ok)
		}
	}
}
