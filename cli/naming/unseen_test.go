package naming

import (
	"errors"
	"slices"
	"testing"

	"ductor/cli"
)

// TestAgentsWithoutAList tests that a user can choose each model of an agent whose list failed.
func TestAgentsWithoutAList(t *testing.T) {
	names := func(current cli.Agent, failed ...cli.Agent) Names {
		n := fixture()
		n.Current = current
		for i, e := range n.Entries {
			if slices.Contains(failed, e.Agent) {
				n.Entries[i] = cli.MenuEntry{Agent: e.Agent, Auth: e.Auth, Err: errors.New("no list")}
			}
		}
		return n
	}
	for _, tc := range []struct {
		current, name string
		want          Choice
		problem       ProblemKind // unless the choice counts
	}{
		{name: "claude/opus high", want: Choice{"claude", "opus", "high"}},
		{name: "claude/opusplan", want: Choice{"claude", "opusplan", ""}},
		{name: "Claude", want: Choice{"claude", "", ""}},
		{name: "claude default", want: Choice{"claude", "", ""}},
		{name: "claude default LOW", want: Choice{"claude", "", "low"}},
		{name: "claude high", want: Choice{"claude", "", "high"}},
		{name: "fast low", want: Choice{"claude", "sonnet", "low"}},
		{name: "opus", want: Choice{"claude", "opus", ""}},
		{current: "claude", name: "default", want: Choice{"claude", "", ""}},
		{current: "claude", name: "mythos high", want: Choice{"claude", "mythos", "high"}},
		{current: "claude", name: "claude/opus high high", problem: TooManyWords},
		{current: "claude", name: "mythos ever", problem: TooManyWords},
		{current: "claude", name: "gpt5", problem: Unknown}, // probably Codex's gpt-5
		{current: "claude", name: "9", problem: Unknown},
		{current: "claude", name: "copilot", problem: Unusable},
		{current: "codex", name: "mythos", problem: Unknown},
	} {
		got, problem := names(cli.Agent(tc.current), "claude").Find(tc.name)
		switch {
		case problem == nil:
			t.Errorf("%q: %+v without a note", tc.name, got)
		case tc.want != Choice{} && (problem.Kind != NotListed || got != tc.want || problem.Entry.Err == nil):
			t.Errorf("%q: %+v, %+v; want %+v", tc.name, got, problem, tc.want)
		case tc.want == Choice{} && (problem.Kind != tc.problem || problem.Chosen()):
			t.Errorf("%q: %+v, %+v; want the problem %v", tc.name, got, problem, tc.problem)
		}
	}
	got, problem := names("claude", "claude", "codex", "gemini").Find("mythos")
	if problem == nil || problem.Kind != NotListed || got != (Choice{"claude", "mythos", ""}) {
		t.Errorf("without any list: %+v, %+v", got, problem)
	}
	// A listed model has priority.
	if got, problem := names("claude", "claude").Find("gpt-5"); problem != nil || got.Agent != "codex" {
		t.Errorf("gpt-5: %+v, %+v", got, problem)
	}
	for name, want := range map[string]Choice{
		"claude": {"claude", "", ""}, "claude/opus": {"claude", "opus", ""}, "claude/default": {"claude", "", ""},
		"fast": {"claude", "sonnet", ""}, "opus": {}, "everyone": {},
	} {
		if got, ok := names("", "claude").Addressed(name); ok != (want != Choice{}) || ok && got != want {
			t.Errorf("@%s: %+v, %v", name, got, ok)
		}
	}
}
