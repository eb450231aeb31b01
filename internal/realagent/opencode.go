package realagent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// OpenCode returns the installed OpenCode, configured to use the model API at baseURL, as an ACP agent. OpenCode's
// default is to allow edits and commands without asking. If it is not installed, the test is skipped, or fails if
// CI=true.
func OpenCode(t testing.TB, baseURL string) CLI {
	t.Helper()
	c := newCLI(t, "OpenCode", filepath.Join("opencode-"+platform(), "bin", "opencode"), filepath.Join(".bin", "opencode"))
	writeHome(t, c, filepath.Join(".config", "opencode", "opencode.json"), fmt.Sprintf(openCodeConfig, baseURL, Key))
	c.set(map[string]string{
		"OPENCODE_DISABLE_AUTOUPDATE":      "1",
		"OPENCODE_DISABLE_MODELS_FETCH":    "1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD":    "1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
	})
	c.ACPArgs = []string{"acp"}
	return c
}

const openCodeConfig = `{
  "model": "sim/sim-1",
  "autoupdate": false,
  "share": "disabled",
  "provider": {"sim": {
    "npm": "@ai-sdk/openai-compatible",
    "name": "Simulated",
    "options": {"baseURL": "%s/v1", "apiKey": "%s"},
    "models": {"sim-1": {"name": "Scripted model", "attachment": true, "reasoning": true, "tool_call": true,
      "modalities": {"input": ["text", "image"], "output": ["text"]}, "limit": {"context": 200000, "output": 32000}}}
  }}
}
`

// Qwen returns the installed Qwen Code, configured to use the model API at baseURL, as an ACP agent. If it is not
// installed, the test is skipped, or fails if CI=true.
func Qwen(t testing.TB, baseURL string) CLI {
	t.Helper()
	program := filepath.Join(".bin", "qwen")
	c := newCLI(t, "Qwen Code", program, program)
	writeHome(t, c, filepath.Join(".qwen", "settings.json"), qwenSettings)
	c.set(map[string]string{"OPENAI_API_KEY": Key, "OPENAI_BASE_URL": baseURL + "/v1", "OPENAI_MODEL": "sim-1"})
	c.ACPArgs = []string{"--acp"}
	return c
}

const qwenSettings = `{
  "security": {"auth": {"selectedType": "openai"}},
  "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "model": {"name": "sim-1"}
}
`

func writeHome(t testing.TB, c CLI, name, text string) {
	t.Helper()
	path := filepath.Join(c.Home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatalf("make a place for %s: %v", name, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatalf("write %s: %v", name, err)
	}
}
