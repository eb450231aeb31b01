package guard

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const (
	id    = "01234567-89ab-cdef-0123-456789abcdef"
	other = "01234567-ffff-ffff-ffff-ffffffffffff" // with the same short id
	began = `{"sessionId":"` + id + `","projectHash":"p"}` + "\n"
	said  = `{"id":"1","type":"user","content":"hello"}` + "\n"
	mine  = "session-2026-11-21T10-00-01234567.jsonl"
)

// TestProtect tests that a file with messages gets a name that Gemini does not reuse, and that all other files stay.
func TestProtect(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		id    string
		moved string // empty for none
	}{
		"what was said": {map[string]string{mine: began + said}, id, mine},
		"a file that was only begun": {map[string]string{mine: began + `{"$set":{"sessionId":"x"}}` + "\n"}, id,
			""},
		"another session of that short id": {map[string]string{mine: strings.ReplaceAll(began, id, other) + said}, id,
			""},
		"both": {map[string]string{mine: began + said,
			"session-2026-11-21T11-30-01234567.jsonl": began}, id, mine},
		"a session that is not there": {map[string]string{"session-2026-11-21T10-00-76543210.jsonl": began +
			said}, id, ""},
		"an id that is a pattern":           {map[string]string{mine: began + said}, "????????-89ab", ""},
		"an id that is too short to be one": {map[string]string{mine: began + said}, "0123", ""},
		"no session at all":                 {nil, id, ""},
		"garbage before and after": {map[string]string{mine: "\x00\n" + began + "{\n" + said + "no end"}, id,
			mine},
		"an end in the middle of a line": {map[string]string{mine: began + strings.TrimSuffix(said, "\n")}, id,
			mine},
		"lines that are longer than buffers": {map[string]string{mine: began + strings.Repeat("x", 1<<17) + "\n" +
			said}, id, mine},
	} {
		t.Run(name, func(t *testing.T) {
			dir, chats := home(t, c.files)
			for range 2 { // the second call changes nothing
				if err := Protect(dir, c.id); err != nil {
					t.Fatal(err)
				}
			}
			left := read(t, chats)
			for file, text := range c.files {
				if was, there := left[file]; there == (file == c.moved) || there && was != text {
					t.Errorf("of %s there is %q", file, was)
				}
				delete(left, file)
			}
			texts := slices.Collect(maps.Values(left))
			if c.moved != "" && (len(texts) != 1 || texts[0] != c.files[c.moved]) || c.moved == "" && len(texts) != 0 {
				t.Errorf("besides there is %q", left)
			}
			for file := range left {
				if !strings.HasPrefix(file, "session-2026-11-21T10-00-") || strings.Contains(file, "01234567") {
					t.Errorf("it is called %s", file)
				}
			}
		})
	}
}

// TestProtectWaitsForNothing tests that directories and pipes in place of a session do not block Protect.
func TestProtectWaitsForNothing(t *testing.T) {
	dir, chats := home(t, nil)
	if err := errors.Join(os.MkdirAll(filepath.Join(chats, "session-dir-01234567.jsonl"), 0o700),
		syscall.Mkfifo(filepath.Join(chats, mine), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Protect(dir, id); err != nil {
		t.Error(err)
	}
}

// TestTheProgram tests that Main finds the session in the given home, and prints errors.
func TestTheProgram(t *testing.T) {
	dir, chats := home(t, map[string]string{mine: began + said})
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GEMINI_CLI_HOME", filepath.Dir(dir))
	var out bytes.Buffer
	if code := Main([]string{id}, &out); code != 0 || out.String() != "{}\n" || read(t, chats)[mine] != "" {
		t.Errorf("exit %d, %q, %q", code, out.String(), read(t, chats))
	}
	out.Reset()
	if code := Main(nil, &out); code != 1 || !strings.Contains(out.String(), `"error":"want one argument: a session"`) {
		t.Errorf("exit %d, %q", code, out.String())
	}
}

// home creates Gemini's directory with session files. Its path contains special characters of patterns.
func home(t *testing.T, files map[string]string) (dir, chats string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "ho[m]e", ".gemini")
	chats = filepath.Join(dir, "tmp", "project", "chats")
	err := os.MkdirAll(chats, 0o700)
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(chats, name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, chats
}

func read(t *testing.T, chats string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(chats)
	for _, e := range entries {
		raw, readErr := os.ReadFile(filepath.Join(chats, e.Name()))
		err = errors.Join(err, readErr)
		all[e.Name()] = string(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}
