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
		current cli.Agent
		failed  []cli.Agent
		name    string
		want    Choice
		problem ProblemKind // unless the choice counts
	}{
		{failed: []cli.Agent{"claude"}, name: "claude/opus high", want: Choice{"claude", "opus", "high"}},
		{failed: []cli.Agent{"claude"}, name: "claude/opusplan", want: Choice{"claude", "opusplan", ""}},
		{failed: []cli.Agent{"claude"}, name: "Claude", want: Choice{"claude", "", ""}},
		{failed: []cli.Agent{"claude"}, name: "claude default", want: Choice{"claude", "", ""}},
		{failed: []cli.Agent{"claude"}, name: "claude default LOW", want: Choice{"claude", "", "low"}},
		{failed: []cli.Agent{"claude"}, name: "claude high", want: Choice{"claude", "", "high"}},
		{failed: []cli.Agent{"codex"}, name: "deep low", want: Choice{"codex", "gpt-5", "low"}},
		{failed: []cli.Agent{"claude"}, name: "opus", want: Choice{"claude", "opus", ""}},
		{current: "claude", failed: []cli.Agent{"claude"}, name: "default", want: Choice{"claude", "", ""}},
		{current: "claude", failed: []cli.Agent{"claude"}, name: "mythos high", want: Choice{"claude", "mythos", "high"}},
		{current: "claude", failed: []cli.Agent{"claude", "codex", "gemini"}, name: "mythos", want: Choice{"claude", "mythos", ""}},
		{current: "claude", failed: []cli.Agent{"claude"}, name: "claude/opus high high", problem: TooManyWords},
		{current: "claude", failed: []cli.Agent{"claude"}, name: "mythos ever", problem: TooManyWords},
		{current: "claude", failed: []cli.Agent{"claude"}, name: "gpt5", problem: Unknown}, // probably Codex's gpt-5
		{current: "claude", failed: []cli.Agent{"claude"}, name: "copilot", problem: Unusable},
		{current: "codex", failed: []cli.Agent{"claude"}, name: "mythos", problem: Unknown},
		{current: "codex", failed: []cli.Agent{"claude"}, name: "default", problem: Unknown},
	} {
		got, problem := names(tc.current, tc.failed...).Find(tc.name)
		switch {
		case problem == nil:
			t.Errorf("%q: %+v without a note", tc.name, got)
		case tc.want != Choice{} && (problem.Kind != NotListed || got != tc.want || problem.Entry.Err == nil):
			t.Errorf("%q: %+v, %+v; want %+v", tc.name, got, problem, tc.want)
		case tc.want == Choice{} && (problem.Kind != tc.problem || problem.Chosen()):
			t.Errorf("%q: %+v, %+v; want the problem %v", tc.name, got, problem, tc.problem)
		}
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
