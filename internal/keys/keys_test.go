package keys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNamesOfKeys(t *testing.T) {
	for text, want := range map[string]string{
		"ANTHROPIC_API_KEY":         "claude.ANTHROPIC_API_KEY",
		"OPENAI_API_KEY":            "codex.OPENAI_API_KEY",
		"GEMINI_API_KEY":            "gemini.GEMINI_API_KEY",
		"GH_TOKEN":                  "copilot.GH_TOKEN",
		"goose.OPENAI_API_KEY":      "goose.OPENAI_API_KEY",
		"MY_KEY":                    "say which agent gets MY_KEY",
		"claude.PATH":               "is no key",
		"claude.LD_PRELOAD":         "is no key",
		"codex.DUCTOR_TOKEN_PIPE":   "which no agent gets",
		"../OPENAI_API_KEY":         "is no name of a key",
		"codex.OPENAI_API_KEY.part": "is no name of a key",
		"":                          "is no name of a key",
	} {
		name, err := Parse(text)
		if got := fmt.Sprint(name, " ", err); !strings.Contains(got, want) {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func set(t *testing.T, state, name, value string) error {
	t.Helper()
	n, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return Set(state, n, strings.NewReader(value))
}

func listKeys(t *testing.T, state, credentials string) (all []string) {
	t.Helper()
	found, err := Read(state, credentials)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range found {
		all = append(all, fmt.Sprintf("%s.%s=%s in %s", k.Agent, k.Name, k.Value.Reveal(), k.From))
	}
	return all
}

func expectEqual(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKeysAreKeptForThisUserAlone(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	expectEqual(t, listKeys(t, state, ""))
	for name, value := range map[string]string{"OPENAI_API_KEY": "sk-old-0123456", "ANTHROPIC_API_KEY": "sk-ant-0123456\n"} {
		if err := set(t, state, name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := set(t, state, "OPENAI_API_KEY", "sk-new-0123456\n"); err != nil {
		t.Fatal(err)
	}
	expectEqual(t, listKeys(t, state, ""), "claude.ANTHROPIC_API_KEY=sk-ant-0123456 in the state directory",
		"codex.OPENAI_API_KEY=sk-new-0123456 in the state directory")

	dir := filepath.Join(state, Folder)
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "codex.OPENAI_API_KEY"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	name, _ := Parse("OPENAI_API_KEY")
	if err := Remove(state, name); err != nil {
		t.Fatal(err)
	}
	if err := Remove(state, name); !errors.Is(err, ErrNone) {
		t.Errorf("removed twice: %v", err)
	}
	expectEqual(t, listKeys(t, state, ""), "claude.ANTHROPIC_API_KEY=sk-ant-0123456 in the state directory")
}

func TestInvalidKeysChangeNothing(t *testing.T) {
	state := t.TempDir()
	if err := set(t, state, "OPENAI_API_KEY", "sk-0123456789"); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "  \n", "short", "two\nlines-of-it", "with\x00nothing", strings.Repeat("x", maxKey+1)} {
		if err := set(t, state, "OPENAI_API_KEY", value); err == nil || strings.Contains(err.Error(), "lines-of-it") {
			t.Errorf("%.20q: %v", value, err)
		}
	}
	expectEqual(t, listKeys(t, state, ""), "codex.OPENAI_API_KEY=sk-0123456789 in the state directory")
}

// A credential takes precedence over a file. Other credentials of the service are not keys.
func TestCredentialsOfSystemd(t *testing.T) {
	state, credentials := t.TempDir(), t.TempDir()
	if err := set(t, state, "OPENAI_API_KEY", "sk-of-the-file"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"codex.OPENAI_API_KEY": "sk-of-systemd\n", "GEMINI_API_KEY": "gm-of-systemd", "telegram-token": "12:ab", "TLS_KEY": "-----",
	} {
		if err := os.WriteFile(filepath.Join(credentials, name), []byte(text), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	expectEqual(t, listKeys(t, state, credentials), "codex.OPENAI_API_KEY=sk-of-systemd in a credential of systemd",
		"gemini.GEMINI_API_KEY=gm-of-systemd in a credential of systemd")
}

func TestAKeyThatOthersMayReadIsRefused(t *testing.T) {
	state := t.TempDir()
	if err := set(t, state, "OPENAI_API_KEY", "sk-0123456789"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(state, Folder, "codex.OPENAI_API_KEY")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(state, ""); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "sk-0123456789") {
		t.Errorf("readable by all: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)); err != nil {
		t.Fatal(err)
	}
	if all, err := Read(state, ""); err == nil {
		t.Errorf("a link out of the directory: %v", all)
	}
	if cfg := fmt.Sprintf("%v %+v", Key{Value: "sk-0123456789"}, Key{Value: "sk-0123456789"}); strings.Contains(cfg, "sk-") {
		t.Errorf("a key is printed: %s", cfg)
	}
}
