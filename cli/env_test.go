package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChildEnv(t *testing.T) {
	parent := []string{
		"PATH=/bin", "HOME=/home/bot", "LC_ALL=C.UTF-8", "LC=no", "FOO=1", "FOO=2", "=odd", "novalue", "EMPTY=",
		"TELEGRAM_TOKEN=123:abc", "DUCTOR_TOKEN=123:abc", "DUCTOR_CHAT_ID=stale", "DUCTOR_RUN=outer",
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_MAX_RETRIES=2", "ANTHROPIC_API_KEY=sk",
	}
	for _, tc := range []struct {
		name  string
		allow []string
		extra map[string]string
		want  []string
	}{
		{"nothing allowed", nil, nil, []string{}},
		{"exact names", []string{"PATH", "EMPTY"}, nil, []string{"EMPTY=", "PATH=/bin"}},
		{"the last of two wins", []string{"FOO"}, nil, []string{"FOO=2"}},
		{"patterns", []string{"LC_*"}, nil, []string{"LC_ALL=C.UTF-8"}},
		{"a dialect's own", []string{"ANTHROPIC_*", "CLAUDE_CODE_*"}, nil, []string{"ANTHROPIC_API_KEY=sk", "CLAUDE_CODE_MAX_RETRIES=2"}},
		{"everything but what never passes", []string{"*"}, nil, []string{
			"ANTHROPIC_API_KEY=sk", "CLAUDE_CODE_MAX_RETRIES=2", "EMPTY=", "FOO=2", "HOME=/home/bot", "LC=no",
			"LC_ALL=C.UTF-8", "PATH=/bin", "TELEGRAM_TOKEN=123:abc"}},
		{"extra wins", []string{"FOO"}, map[string]string{"FOO": "3", "BAR": "b=c"}, []string{"BAR=b=c", "FOO=3"}},
		{"the chat's id by extra only", []string{"DUCTOR_*"}, map[string]string{ChatIDVar: "42"}, []string{"DUCTOR_CHAT_ID=42"}},
		{"extra cannot smuggle", nil, map[string]string{
			"DUCTOR_TOKEN": "x", "CLAUDECODE": "1", "A=B": "c", "": "d", "NUL": "a\x00b"}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ChildEnv(parent, tc.allow, tc.extra)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The base list must not pass variables that usually hold secrets.
func TestBaseEnvHoldsNoSecrets(t *testing.T) {
	var parent []string
	secrets := []string{
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY",
		"DUCTOR_TELEGRAM_TOKEN", "TELEGRAM_BOT_TOKEN", "GIT_CONFIG_VALUE_0", "GIT_ASKPASS", "GOPROXY", "NPM_TOKEN", "DATABASE_URL",
	}
	for _, name := range secrets {
		parent = append(parent, name+"=hunter2")
	}
	if got := ChildEnv(parent, BaseEnv(), nil); len(got) > 0 {
		t.Errorf("these pass: %q", got)
	}
	got := ChildEnv([]string{"PATH=/bin", "XDG_CONFIG_HOME=/c", "https_proxy=http://proxy"}, BaseEnv(), nil)
	if want := []string{"PATH=/bin", "XDG_CONFIG_HOME=/c", "https_proxy=http://proxy"}; !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, " "))
	}
}
