package terminal

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func machine(t *testing.T) Machine {
	t.Helper()
	return Machine{Home: t.TempDir(), Getenv: func(string) string { return "" }, Program: "/opt/my ductor", State: "/state"}
}

func (m Machine) put(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(m.Home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, files []File, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := f.Write(); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const ownSettings = `{
    "model": "opus",
    "hooks": {
        "Stop": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "say <done> && true"
                    }
                ]
            }
        ]
    },
    "alpha": 1.50
}
`

const ownConfig = "# mine\nmodel = \"gpt\" # best\nnotify = [\n  \"notify-send\", # loud\n  \"Codex\",\n]\n\n[tui]\nnotify = \"no\"\n"

// Installing keeps the owner's hooks, installing again changes nothing, and uninstalling restores the original text.
func TestHooksComeAndGo(t *testing.T) {
	m := machine(t)
	claude, codex := m.put(t, ".claude/settings.json", ownSettings), m.put(t, ".codex/config.toml", ownConfig)
	gemini := m.put(t, ".gemini/settings.json", "{}\n")
	files, err := m.Installed()
	write(t, files, err)
	text := read(t, claude)
	own, ours := strings.Index(text, "say <done> && true"), strings.Index(text, "'/opt/my ductor' hook claude --ductor-state /state")
	if own < 0 || ours < own && !strings.Contains(text[own:], "'/opt/my ductor' hook") || !strings.Contains(text, "PermissionRequest") || !strings.Contains(text, "1.50") {
		t.Errorf("Claude's settings are %s", text)
	}
	if text := read(t, codex); !strings.Contains(text, `'--then', 'notify-send', 'Codex'`) || !strings.Contains(text, "# mine\nmodel") {
		t.Errorf("Codex's settings are %s", text)
	}
	if text := read(t, gemini); !strings.Contains(text, "AfterAgent") {
		t.Errorf("Gemini's settings are %s", text)
	}
	again, err := m.Installed()
	for _, f := range again {
		if f.Changed() || !f.Hooked {
			t.Errorf("a second time changes %s: %s", f.Path, f.Diff())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err = m.Uninstalled()
	write(t, files, err)
	if text := read(t, claude); text != ownSettings {
		t.Errorf("Claude's settings are %s after all", text)
	}
	if words, err := notifyOf([]byte(read(t, codex))); err != nil || !reflect.DeepEqual(words, []string{"notify-send", "Codex"}) {
		t.Errorf("Codex tells %q after all, %v", words, err)
	}
	if text := read(t, gemini); text != "{}\n" {
		t.Errorf("Gemini's settings are %s after all", text)
	}
}

func TestHooksAreNotWrittenIntoInvalidSettings(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, says string }{
		"not JSON":        {".claude/settings.json", "{ // mine\n}", "is not a JSON object"},
		"a list":          {".claude/settings.json", "[]", "is not a JSON object"},
		"more than one":   {".claude/settings.json", "{} {}", "is not a JSON object"},
		"cut short":       {".gemini/settings.json", `{"a": 1`, "is not a JSON object"},
		"hooks is a list": {".claude/settings.json", `{"hooks": []}`, "hooks: it is not a JSON object"},
		"an event is not": {".claude/settings.json", `{"hooks": {"Stop": 1}}`, "hooks.Stop is no list"},
		"not TOML":        {".codex/config.toml", "notify = ", "is not valid TOML"},
		"a text":          {".codex/config.toml", `notify = "bell"`, "is not valid TOML"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			path := m.put(t, tt.file, tt.text)
			_, err := m.Installed()
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "nothing was written") {
				t.Errorf("says %v", err)
			}
			if read(t, path) != tt.text {
				t.Error("the file was changed")
			}
		})
	}
	if _, err := machine(t).Installed(); !errors.Is(err, ErrNoCLI) {
		t.Errorf("without a CLI: %v", err)
	}
}

func TestSettingsThatChangedMeanwhileStay(t *testing.T) {
	m := machine(t)
	path := m.put(t, ".claude/settings.json", "{}")
	files, err := m.Installed()
	if err != nil {
		t.Fatal(err)
	}
	m.put(t, ".claude/settings.json", `{"new": true}`)
	if err := files[0].Write(); err == nil || read(t, path) != `{"new": true}` {
		t.Errorf("it became %s, %v", read(t, path), err)
	}
}

// All settings except ductor's hooks stay unchanged and in order, whatever JSON the file contains.
func TestOtherSettingsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z<&]{1,6}`), 0, 5, rapid.ID[string]).Draw(t, "keys")
		var o object
		for _, k := range keys {
			if k != "hooks" && o.set(k, rapid.SliceOf(rapid.Float64Range(-1e9, 1e9)).Draw(t, "value")) != nil {
				t.Fatal("no JSON")
			}
		}
		before, err := o.encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		claude := allSettings()[0]
		m := Machine{Program: "/d", State: rapid.String().Draw(t, "state")}
		with, had, err := claude.add(before, m)
		if err != nil || had || !json.Valid(with) {
			t.Fatalf("%s, %v, %v", with, had, err)
		}
		after, had, err := claude.remove(with, m)
		if err != nil || !had || string(after) != string(before) {
			t.Fatalf("%s became %s, %v, %v", before, after, had, err)
		}
	})
}

// Each account has the hooks in its settings. Settings that accounts share have them once.
func TestHooksOfAccounts(t *testing.T) {
	m := machine(t)
	own, work := filepath.Join(m.Home, ".claude/settings.json"), m.put(t, "work/settings.json", "{}")
	if err := os.Mkdir(filepath.Dir(own), 0o755); err != nil { // without settings
		t.Fatal(err)
	}
	gemini := m.put(t, "other/.gemini/settings.json", "{}")
	shared := filepath.Join(m.Home, "shared")
	if err := os.Symlink(filepath.Dir(own), shared); err != nil {
		t.Fatal(err)
	}
	homes := map[string][]string{
		"claude": {shared, filepath.Dir(work), filepath.Join(m.Home, "missing")},
		"gemini": {filepath.Join(m.Home, "other")},
	}
	m.Accounts = func(agent string) []string { return homes[agent] }
	files, err := m.Installed()
	write(t, files, err)
	for _, path := range []string{own, work, gemini} {
		if !strings.Contains(read(t, path), StateFlag) {
			t.Errorf("%s has no hooks", path)
		}
	}
	if len(files) != 3 {
		t.Errorf("%d files have hooks, want 3", len(files))
	}
	files, err = m.Uninstalled()
	write(t, files, err)
	if text := read(t, work); strings.Contains(text, StateFlag) {
		t.Errorf("the hooks of the account stay: %s", text)
	}
}

// Uninstalling removes hooks from the default folder also if a variable names another folder by now.
func TestHooksOfTheDefaultFolderGo(t *testing.T) {
	m := machine(t)
	before := m.put(t, ".gemini/settings.json", "{}\n")
	files, err := m.Installed()
	write(t, files, err)
	m.put(t, "other/.gemini/settings.json", "{}\n")
	m.Getenv = func(name string) string {
		return map[string]string{"GEMINI_CLI_HOME": filepath.Join(m.Home, "other")}[name]
	}
	files, err = m.Installed()
	if err != nil || len(files) != 1 {
		t.Errorf("%d files get hooks, %v; want 1", len(files), err)
	}
	files, err = m.Abandoned()
	if err != nil || len(files) != 1 || files[0].Path != before {
		t.Errorf("the abandoned files are %v, %v; want %s", files, err, before)
	}
	files, err = m.Uninstalled()
	write(t, files, err)
	if text := read(t, before); text != "{}\n" {
		t.Errorf("the settings in the default folder are %s after all", text)
	}
}
