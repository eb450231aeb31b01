package app

import (
	"io"
	"log/slog"
	"slices"
	"testing"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/keys"
)

// TestOnlyItsAgentGetsAKey tests that only a key's own agent has it in its environment, on this machine and in a
// sandbox.
func TestOnlyItsAgentGetsAKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "of-the-environment")
	cfg := config.Default()
	cfg.Keys = []keys.Key{
		{Agent: "codex", Name: "OPENAI_API_KEY", Value: "sk-of-codex-1"}, {Agent: "goose", Name: "WARM_KEY", Value: "sk-of-goose-1"},
	}
	a := agents{cfg: cfg, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, inside := range []bool{false, true} {
		for agent, want := range map[cli.Agent][]string{
			"codex": {"sk-of-codex-1", ""}, "goose": {"", "sk-of-goose-1"}, "claude": {"", ""},
		} {
			env := a.dialect(runEnv{inside: inside}, agent, "", nil).ChildEnv(cli.Request{}, nil, nil)
			if got := []string{cli.Variable(env, "OPENAI_API_KEY"), cli.Variable(env, "WARM_KEY")}; !slices.Equal(got,
				want) {
				t.Errorf("%s, in a sandbox: %v, gets %q, want %q", agent, inside, got, want)
			}
		}
	}
	if text := NewScrubber(cfg).String("sk-of-codex-1 sk-of-goose-1"); text != "[secret removed] [secret removed]" {
		t.Errorf("it is shown: %s", text)
	}
}
