package app

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ductor/cli"
	"ductor/cli/acp"
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
			o := a.providerOptions(runEnv{inside: inside}, agent, cli.AccountHome{}, "", nil)
			env := o.ChildEnv(cli.Request{}, nil, nil)
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

// TestOnlyItsAccountGetsAKey tests that no account has a key or a home of another one in its environment.
func TestOnlyItsAccountGetsAKey(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CODEX_HOME",
		"CLAUDE_SECURESTORAGE_CONFIG_DIR", "OPENAI_API_KEY"} {
		t.Setenv(name, "of-the-environment")
	}
	t.Setenv("ANTHROPIC_BASE_URL", "http://gateway")
	cfg, dir := config.Default(), t.TempDir()
	work, other := filepath.Join(dir, "work"), filepath.Join(dir, "other")
	cfg.Agents.Claude.Accounts = map[string]cli.AccountSettings{"work": {Home: work}, "other": {Home: other}}
	cfg.Agents.Codex.Accounts = map[string]cli.AccountSettings{"work": {Home: work}}
	cfg.Keys = []keys.Key{
		{Agent: "claude", Name: "ANTHROPIC_API_KEY", Value: "sk-of-claude"},
		{Agent: "claude@work", Name: "ANTHROPIC_API_KEY", Value: "sk-of-work"},
	}
	tokens := &tokens{scrub: NewScrubber(cfg)}
	tokens.try("claude", "CLAUDE_CODE_OAUTH_TOKEN", "token-of-claude")
	tokens.try("claude@other", "CLAUDE_CODE_OAUTH_TOKEN", "token-of-other")
	a := agents{cfg: cfg, log: slog.New(slog.DiscardHandler), tokens: tokens}
	environ := func(agent cli.Agent, home cli.AccountHome) (got []string) {
		allowed := []string{"ANTHROPIC_*", "CLAUDE_*", "CODEX_*", "OPENAI_*"}
		env := a.providerOptions(runEnv{}, agent, home, "", nil).ChildEnv(cli.Request{}, allowed, nil)
		for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN",
			"CLAUDE_SECURESTORAGE_CONFIG_DIR", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL"} {
			got = append(got, cli.Variable(env, name))
		}
		return got
	}
	const none, outside, gateway = "", "of-the-environment", "http://gateway"
	want := map[string][]string{
		"claude@work":  {work, outside, "sk-of-work", none, none, outside, gateway},
		"claude@other": {other, outside, none, "token-of-other", none, outside, gateway},
		"codex@work":   {outside, work, outside, outside, outside, none, gateway},
	}
	accounts := a.accounts(runEnv{})
	for _, one := range accounts {
		of := one.Account.Of(one.Provider.Agent())
		if got := environ(one.Provider.Agent(), one.AccountHome); !slices.Equal(got, want[of]) {
			t.Errorf("%s gets %q, want %q", of, got, want[of])
		}
	}
	if len(accounts) != len(want) {
		t.Errorf("there are %d accounts", len(accounts))
	}
	own := []string{outside, outside, "sk-of-claude", "token-of-claude", outside, outside, gateway}
	if got := environ("claude", cli.AccountHome{}); !slices.Equal(got, own) {
		t.Errorf("the default account gets %q, want %q", got, own)
	}
	if info, err := os.Stat(work); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the home of an account: %v, %v", info, err)
	}
}

// TestAnAccountOfAnACPAgentGetsNoKey tests that the account of an ACP agent gets no key of ductor's environment, even if
// the agent's env allows it, and no variable that leads the program behind the agent to another log-in.
func TestAnAccountOfAnACPAgentGetsNoKey(t *testing.T) {
	leads := map[string][]string{
		"qwen":       {"OPENAI_API_KEY", "DASHSCOPE_TOKEN", "MY_PASSWORD"},
		"claude-acp": {"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "ANTHROPIC_CUSTOM_HEADERS"},
		"codex-acp":  {"CODEX_SQLITE_HOME", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"},
	}
	t.Setenv("OPENAI_BASE_URL", "http://gateway")
	cfg := config.Default()
	cfg.Agents.ACP = map[string]acp.Settings{}
	for name, variables := range leads {
		e, ok := acp.EntryOf(map[string]string{
			"qwen": "qwen", "claude-acp": "claude-agent-acp", "codex-acp": "codex-acp",
		}[name])
		if !ok {
			t.Fatalf("the catalogue lacks %s", name)
		}
		for _, variable := range variables {
			t.Setenv(variable, "of-the-environment")
		}
		cfg.Agents.ACP[name] = acp.Settings{
			Enabled: true, Path: e.Command, Env: append([]string{"OPENAI_*"}, variables...),
			Accounts: map[string]cli.AccountSettings{"work": {Home: filepath.Join(t.TempDir(), "work")}},
		}
		cfg.Keys = append(cfg.Keys, keys.Key{Agent: name + "@work", Name: "OPENAI_ADMIN_KEY", Value: "sk-of-work"})
	}
	a := agents{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	accounts := a.accounts(runEnv{})
	if len(accounts) != len(leads) {
		t.Fatalf("there are %d accounts", len(accounts))
	}
	for _, one := range accounts {
		agent := one.Provider.Agent()
		environ := func(home cli.AccountHome) []string {
			o := a.providerOptions(runEnv{}, agent, home, "", cfg.Agents.ACP[string(agent)].Env)
			return o.ChildEnv(cli.Request{}, nil, nil)
		}
		env := environ(one.AccountHome)
		for _, variable := range leads[string(agent)] {
			if got := cli.Variable(env, variable); got != "" {
				t.Errorf("the account of %s gets %s", agent, variable)
			}
			if cli.Variable(environ(cli.AccountHome{}), variable) == "" {
				t.Errorf("the default account of %s lacks %s", agent, variable)
			}
		}
		if cli.Variable(env, "OPENAI_BASE_URL") == "" || cli.Variable(env, "OPENAI_ADMIN_KEY") != "sk-of-work" {
			t.Errorf("the account of %s lacks a variable or its own key: %q", agent, env)
		}
	}
}
