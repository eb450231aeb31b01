package realagent_test

import (
	"strings"
	"testing"

	"ductor/internal/realagent"
)

// verdict notes how a helper ended its test.
type verdict struct {
	testing.TB
	failed, skipped string
}

type over struct{}

func (v *verdict) Helper() {}

func (v *verdict) Fatal(args ...any) {
	v.failed = args[0].(string)
	panic(over{})
}

func (v *verdict) Skip(args ...any) {
	v.skipped = args[0].(string)
	panic(over{})
}

// judged runs find and says how it ended.
func judged(t *testing.T, find func(testing.TB, string) realagent.CLI) (v *verdict) {
	t.Helper()
	v = &verdict{TB: t}
	defer func() {
		if r := recover(); r != nil && r != (over{}) {
			panic(r)
		}
	}()
	find(v, "http://127.0.0.1:1")
	return v
}

func TestAMissingCLIIsSkippedAtHomeAndFailsInCI(t *testing.T) {
	t.Setenv("DUCTOR_TEST_AGENTS", t.TempDir())
	for name, find := range map[string]func(testing.TB, string) realagent.CLI{"Claude": realagent.Claude, "Codex": realagent.Codex} {
		t.Setenv("CI", "")
		if v := judged(t, find); !strings.Contains(v.skipped, "npm ci") || v.failed != "" {
			t.Errorf("%s at home: %+v", name, v)
		}
		t.Setenv("CI", "true")
		if v := judged(t, find); !strings.Contains(v.failed, "npm ci") || v.skipped != "" {
			t.Errorf("%s in CI: %+v", name, v)
		}
	}
}
