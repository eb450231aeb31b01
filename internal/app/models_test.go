package app

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ductor/cli"
	"ductor/internal/config"
)

// TestDoubtsOfModels tests that each unlisted model is reported with its line, unless its agent cannot be used.
func TestDoubtsOfModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	text := `[telegram]
token = "123456789:AAExample-token_for-tests0000000000"
[agents.claude]
model = "opuss"
[agents.codex]
model = "gpt-5"
[agents.gemini]
model = "anything"
[roles.reviewer]
prompt = "You review."
agent = "claude"
model = "opus"
[models.deep]
use = "codex/gpt-5 gigantic"
[models.fast]
use = "claude/opus low"
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	ok := cli.Auth{State: cli.Authenticated}
	entries := []cli.MenuEntry{
		{Agent: "claude", Auth: ok, Models: []cli.Model{{ID: "opus", Efforts: []cli.Effort{"low"}}}},
		{Agent: "codex", Auth: ok, Models: []cli.Model{{ID: "gpt-5", Efforts: []cli.Effort{"low", "high"}}}},
		{Agent: "gemini", Auth: cli.Auth{State: cli.NotFound}},
	}
	want := []string{
		`config.toml:4: agents.claude.model: no agent lists a model "opuss"; did you mean "opus"?`,
		`config.toml:14: models.deep.use: codex/gpt-5 knows these efforts: [low high]`,
	}
	if got := DoubtsOfModels(cfg, entries); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
