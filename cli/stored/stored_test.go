package stored_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/claude"
	"ductor/cli/codex"
	"ductor/cli/copilot"
	"ductor/cli/gemini"
	"ductor/cli/stored/files"
)

// keeper is a dialect with a session file of its real CLI. The first prompt is "first prompt", the second is the last.
type keeper struct {
	make func(o cli.ProviderOptions) cli.SessionKeeper
	id   cli.AgentSessionID
	file string // below the home
	dir  string // in which the real CLI worked
	last string
}

func keepers() map[cli.Agent]keeper {
	return map[cli.Agent]keeper{
		"claude": {
			func(o cli.ProviderOptions) cli.SessionKeeper { return claude.New(claude.Options{ProviderOptions: o}) },
			"8e3ffff2-cb0a-4ae2-a20a-982fd57eae5c",
			".claude/projects/-src-my-app/8e3ffff2-cb0a-4ae2-a20a-982fd57eae5c.jsonl",
			"/tmp/ductor-agent-1610612210/work",
			"second prompt [[text ok2]]",
		},
		"codex": {
			func(o cli.ProviderOptions) cli.SessionKeeper { return codex.New(codex.Options{ProviderOptions: o}) },
			"01a20ba8-9f0d-7400-a45b-8122ed419215",
			".codex/sessions/2026/11/24/rollout-2026-11-24T03-45-29-01a20ba8-9f0d-7400-a45b-8122ed419215.jsonl",
			"/tmp/ductor-agent-4220474098/work", "second prompt [[text ok2]]",
		},
		"gemini": {
			func(o cli.ProviderOptions) cli.SessionKeeper { return gemini.New(gemini.Options{ProviderOptions: o}) },
			"b5d20239-aff5-41e1-8458-4527266dffc7", ".gemini/tmp/work/chats/session-2026-11-24T03-47-b5d20239.jsonl",
			"86ca8a263a8e0a097740a971573d03700c4eaf27cff985201aef883e0ececbd6", "second prompt [[text ok2]]",
		},
		"copilot": {
			func(o cli.ProviderOptions) cli.SessionKeeper { return copilot.New(copilot.Options{ProviderOptions: o}) },
			"e9759a1d-d79e-4b8c-85bd-27af6ccd8ad7",
			".copilot/session-state/e9759a1d-d79e-4b8c-85bd-27af6ccd8ad7/events.jsonl",
			"/tmp/ductor-agent-1207072097/work",
			"second prompt [[text ok2]]",
		},
	}
}

const dir = "/src/my.app"

// kept returns the file of the real CLI, moved to another directory.
func (k keeper) kept(t *testing.T, agent cli.Agent, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", string(agent)+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if agent == "gemini" { // its name contains a digest of the directory
		sum := sha256.Sum256([]byte(dir))
		dir = hex.EncodeToString(sum[:])
	}
	return bytes.ReplaceAll(text, []byte(k.dir), []byte(dir))
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if err := os.Chtimes(path, noon, noon); err != nil {
		t.Fatal(err)
	}
}

// Each dialect finds the session of its real CLI, with its prompts, and only for the session's directory. Damaged files
// change nothing.
func TestStoredSessions(t *testing.T) {
	for agent, k := range keepers() {
		t.Run(string(agent), func(t *testing.T) {
			home := t.TempDir()
			p := k.make(cli.ProviderOptions{Env: func() []string { return []string{"HOME=" + home} }})
			own := k.kept(t, agent, dir)
			put(t, filepath.Join(home, k.file), own)
			other := func(sign string) string {
				return filepath.Join(home, strings.ReplaceAll(k.file, string(k.id), sign+string(k.id)))
			}
			if other("1") == filepath.Join(home, k.file) { // Gemini's file name has a part of the ID
				other = func(sign string) string {
					return filepath.Join(home, strings.ReplaceAll(k.file, "b5d20239", sign+"5d20239"))
				}
			}
			put(t, other("1"), k.kept(t, agent, "/src/my-app"))
			put(t, other("2"), nil)
			put(t, other("3"), []byte("{\n\xff[]\n\"\"\nnull\n"+strings.Repeat("[", 1<<20)))
			put(t, other("4"), own[:100])
			put(t, other("5"), bytes.ReplaceAll(own, []byte(k.id), []byte("--help")))
			put(t, other("6"), bytes.ReplaceAll(bytes.ReplaceAll(own, []byte("first prompt"), nil), []byte("content"),
				[]byte("nothing")))
			got, err := p.StoredSessions(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			want := cli.StoredSession{Agent: agent, ID: k.id, Dir: dir, First: "first prompt [[text ok]]", Last: k.last}
			for i := range got {
				got[i].Used = time.Time{}
			}
			if d := cmp.Diff([]cli.StoredSession{want}, got); d != "" {
				t.Error(d)
			}
			if got, err := p.StoredSessions(t.Context(), "/src/none"); got != nil || err != nil {
				t.Errorf("of another directory there are %v, %v", got, err)
			}
			if words := p.ResumeCommand(k.id); words[0] != string(agent) ||
				!strings.Contains(strings.Join(words, " "), string(k.id)) {
				t.Errorf("it is resumed by %q", words)
			}
		})
	}
}

// A prompt with only a picture does not count as the last prompt.
func TestAPictureAloneIsNoPrompt(t *testing.T) {
	home := t.TempDir()
	k := keepers()["claude"]
	p := k.make(cli.ProviderOptions{Env: func() []string { return []string{"HOME=" + home} }})
	line := fmt.Sprintf(
		`{"type":"user","sessionId":%q,"cwd":%q,"message":{"content":[{"type":"image"},{"type":"text","text":"\n"}]}}`+
			"\n", k.id, dir)
	put(t, filepath.Join(home, k.file), append(k.kept(t, "claude", dir), line...))
	if got, err := p.StoredSessions(t.Context(), dir); err != nil || len(got) != 1 || got[0].Last != k.last {
		t.Errorf("it keeps %+v, %v", got, err)
	}
}

// far is a launcher of an environment whose files this host does not see.
type far struct {
	cli.Launcher
	args []string
}

func (f *far) Help(_ context.Context, _ []string, args ...string) ([]byte, error) {
	f.args = args
	var out bytes.Buffer
	if code := files.Main(args[1:], &out); code != 0 {
		return nil, os.ErrInvalid
	}
	raw := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(out.Bytes()), []byte(`{"files":`)), []byte("}"))
	return raw, nil
}

// If the files are elsewhere, ductor's program there reads them.
func TestStoredSessionsElsewhere(t *testing.T) {
	k := keepers()["codex"]
	home := t.TempDir()
	t.Setenv("HOME", home) // of the program in the environment
	put(t, filepath.Join(home, k.file), k.kept(t, "codex", dir))
	f := &far{}
	p := k.make(cli.ProviderOptions{Launcher: f, Env: func() []string { return []string{"HOME=/of/this/host"} }})
	got, err := p.StoredSessions(t.Context(), dir)
	if err != nil || len(got) != 1 || got[0].ID != k.id || f.args[0] != files.Verb {
		t.Errorf("asked %q: %v, %v", f.args, got, err)
	}
}
