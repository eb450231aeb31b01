package realagent

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// OfProtocol returns the constructors of the ACP agents that users can configure in [agents.acp]. The key is the name
// of the agent, such as "opencode".
func OfProtocol() map[string]func(t testing.TB, baseURL string) CLI {
	return map[string]func(testing.TB, string) CLI{
		"opencode": OpenCode, "qwen": Qwen, "cline": Cline, "codex-acp": CodexACP, "claude-agent-acp": ClaudeACP,
	}
}

// Names returns the names of the environment variables of c, sorted.
func (c CLI) Names() []string { return slices.Sorted(maps.Keys(c.Vars)) }

// Cline returns the installed Cline, configured to use the model API at baseURL, as an ACP agent. If it is not
// installed, the test is skipped, or fails if CI=true.
func Cline(t testing.TB, baseURL string) CLI {
	t.Helper()
	program := filepath.Join("@cline", "cli-"+platform(), "bin", "cline")
	c := newCLI(t, "Cline", program, program)
	settings := filepath.Join(".cline", "data", "settings", "providers.json")
	writeHome(t, c, settings, fmt.Sprintf(clineProviders, Key, baseURL))
	c.set(map[string]string{
		"CLINE_API_KEY": Key, "CLINE_PROVIDER": "openai-compatible", "CLINE_SESSION_BACKEND_MODE": "local",
		"CLINE_LOG_ENABLED": "0", "OTEL_SDK_DISABLED": "true",
	})
	c.ACPArgs = []string{"--acp"}
	return c
}

const clineProviders = `{"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {
  "openai-compatible": {
    "settings": {"provider": "openai-compatible", "apiKey": "%s", "model": "gpt-4o", "baseUrl": "%s/v1"},
    "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"
  }
}}
`

// CodexACP returns the installed ACP adapter of Codex. The adapter starts the program that Codex returns.
func CodexACP(t testing.TB, baseURL string) CLI {
	t.Helper()
	return adapter(t, Codex(t, baseURL), "codex-acp", "CODEX_PATH")
}

// ClaudeACP returns the installed ACP adapter of Claude Code. The adapter starts the program that Claude returns.
func ClaudeACP(t testing.TB, baseURL string) CLI {
	t.Helper()
	return adapter(t, Claude(t, baseURL), "claude-agent-acp", "CLAUDE_CODE_EXECUTABLE")
}

// adapter returns an ACP adapter for the agent c. An environment variable tells the adapter where the agent's program
// is. The adapter needs no arguments.
func adapter(t testing.TB, c CLI, program, variable string) CLI {
	t.Helper()
	c.set(map[string]string{variable: c.Path, "NO_BROWSER": "1"})
	c.Path = Npm(t, program)
	c.Npm, c.ACPArgs = c.Path, []string{}
	return c
}
