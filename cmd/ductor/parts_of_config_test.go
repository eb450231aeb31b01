package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/app"
	"ductor/internal/store"
)

// Commands that need only some parts of the configuration work although it has a mistake elsewhere, and print the
// mistake. The others refuse.
func TestAMistakeElsewhereInTheConfiguration(t *testing.T) {
	town := surroundings(t, nil)
	valid := town.writeConfig()
	if err := os.MkdirAll(town.cfg.Storage.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(town.cfg.Storage.Dir, app.DatabaseFile), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	config, archive := withMistake(t, valid), filepath.Join(t.TempDir(), "archive")
	const mistake, secret = "there is no such table", "claude.ANTHROPIC_API_KEY"
	if code, said := runWithInput(t, "sk-ant-1\n", "secret", "set", secret, "-c", config); code != exitOK ||
		!strings.Contains(said, mistake) {
		t.Errorf("secret set: exit %d: %s", code, said)
	}
	for _, args := range [][]string{
		{"secret", "list"}, {"secret", "rm", secret}, {"users", "list"}, {"backup", archive}, {"ps"}, {"audit"},
		{"backup", archive + "-whole", "--with-secrets"}, {"restore", archive, "--force"},
		{"mcp", "token", "ide"}, {"mcp", "token", "list"}, {"mcp", "token", "revoke", "ide"},
		{"upgrade", "--check"}, {"agents", "--wait", "1ms"},
	} {
		if code, _, said := runDuctor(t, append(args, "-c", config)...); code != exitOK ||
			!strings.Contains(said, mistake) {
			t.Errorf("%q: exit %d: %s", args, code, said)
		}
	}
	for _, args := range [][]string{ // these fail for another reason
		{"attach"}, {"users", "remove", "66"}, {"terminal", "uninstall", "--yes"},
	} {
		if code, _, said := runDuctor(t, append(args, "-c", config)...); code != exitFailure ||
			!strings.Contains(said, mistake) {
			t.Errorf("%q: exit %d: %s", args, code, said)
		}
	}
	for _, args := range [][]string{{"run"}, {"agents", "add", "goose"}, {"service", "install", "--yes"}} {
		if code, _, said := runDuctor(t, append(args, "-c", config)...); code != exitConfig ||
			!strings.Contains(said, mistake) {
			t.Errorf("%q: exit %d: %s", args, code, said)
		}
	}
}

// A command refuses if the mistake is in a part that it needs: it would work on other data.
func TestAMistakeInTheNeededPartOfTheConfiguration(t *testing.T) {
	town := surroundings(t, nil)
	text, err := os.ReadFile(town.writeConfig())
	if err != nil {
		t.Fatal(err)
	}
	for mistake, args := range map[string][]string{
		"\n[users.99]\nrole = \"viewer\"\n": {"users", "list"},
		"\n[storag]\ndir = \"/x\"\n":        {"secret", "list"},
		"\n[upgrade]\nurl = 1\n":            {"upgrade", "--check"},
	} {
		config := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(config, append(text, mistake...), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, said := runDuctor(t, append(args, "-c", config)...); code != exitConfig {
			t.Errorf("%q: exit %d: %s", args, code, said)
		}
	}
}
