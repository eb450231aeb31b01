package clitest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/host"
)

// Isolated describes the provider that OwnHomes tests, and private data in the home of ductor's owner. A session with
// its own home directory must not see this data.
type Isolated struct {
	Provider cli.Provider
	Mode     cli.Mode
	Owner    string // home directory of ductor's owner
	Dir      string // working directory of sessions, below Owner
	Seeds    []cli.HomeSeed
	// Words are texts from the owner's memory files, skills and the like. The model receives them if a session uses the
	// owner's home. Programs are paths of files that the owner's MCP servers and hooks create when these servers and
	// hooks start.
	Words, Programs []string
	// Kept are texts from files in the working directory. The model must receive them in every session, even if the
	// session has its own home.
	Kept []string
	// Asked returns everything that was sent to the model so far.
	Asked func() string
}

// OwnHomes checks that a session with its own home does not see the owner's private data. It first checks that a
// session with the owner's home does see the data; otherwise the test would prove nothing. It also checks that a
// session can be resumed in its own home, but not in another.
func OwnHomes(t *testing.T, in Isolated) {
	t.Helper()
	patience, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	in.converse(patience, t, "", "", `[[text "shared"]]`)
	shared := in.Asked()
	for _, word := range slices.Concat(in.Words, in.Kept) {
		if !strings.Contains(shared, word) {
			t.Errorf("in the owner's home the model is not told %s", word)
		}
	}
	for _, file := range in.Programs {
		if err := os.Remove(file); err != nil {
			t.Errorf("in the owner's home something is not started: %v", err)
		}
	}
	homes, err := host.OpenHomes(host.HomesOptions{Dir: filepath.Join(t.TempDir(), "homes"), Seeds: in.Seeds})
	if err != nil {
		t.Fatal(err)
	}
	defer homes.Close()
	home := func(session string) string {
		dir, err := homes.Home(patience, session)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first := in.converse(patience, t, home("first"), "", `my name is Ann [[text "ok"]]`, `[[text "second turn"]]`)
	again := in.converse(patience, t, home("first"), first.AgentSessionID, `[[history]]`)
	if again.AgentSessionID != first.AgentSessionID || !strings.Contains(again.Text, "my name is Ann") {
		t.Errorf("resumed in its home, session %s became %s and recalls %q", first.AgentSessionID, again.AgentSessionID,
			again.Text)
	}
	in.checkNotResumed(patience, t, home("second"), first.AgentSessionID)
	asked := in.Asked()[len(shared):]
	for _, word := range in.Words {
		if strings.Contains(asked, word) {
			t.Errorf("in a home of its own the model is told %s", word)
		}
	}
	for _, word := range in.Kept {
		if !strings.Contains(asked, word) {
			t.Errorf("in a home of its own the model is not told %s", word)
		}
	}
	for _, file := range in.Programs {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("in a home of its own %s was started (%v)", filepath.Base(file), err)
		}
	}
	if left := leftIn(t, filepath.Join(in.Owner), string(first.AgentSessionID)); left != "" {
		t.Errorf("the session left %s in the owner's home", left)
	}
	if left := leftIn(t, home("second"), string(first.AgentSessionID)); left != "" {
		t.Errorf("the session left %s in the home of another", left)
	}
}

// converse opens a session, runs turns with the given prompts, closes the session, and returns the last Result.
func (in Isolated) converse(ctx context.Context, t *testing.T, home string, resume cli.AgentSessionID,
	prompts ...string) cli.Result {
	t.Helper()
	req := cli.Request{Dir: in.Dir, Project: cli.WithProject, Home: home, Resume: resume, Conversation: "homes"}
	s, err := in.Provider.Open(ctx, in.Mode, req)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer Close(t, s)
	var last cli.Result
	for _, prompt := range prompts {
		req.Prompt = prompt
		last, _ = Play(ctx, s, req)
		if last.Err != nil || last.Text == "" {
			t.Fatalf("%s: %+v, %v", prompt, last, last.Err)
		}
		req.Resume = last.AgentSessionID
		if elsewhere := req; home != "" {
			if elsewhere.Home = home + "x"; s.Fits(elsewhere) || !s.Fits(req) {
				t.Error("a session fits another home, or not its own")
			}
		}
	}
	return last
}

// checkNotResumed checks that a session cannot be resumed in another home.
func (in Isolated) checkNotResumed(ctx context.Context, t *testing.T, home string, id cli.AgentSessionID) {
	t.Helper()
	req := cli.Request{Dir: in.Dir, Project: cli.WithProject, Home: home, Resume: id, Conversation: "homes",
		Prompt: `[[history]]`}
	s, err := in.Provider.Open(ctx, in.Mode, req)
	if err != nil {
		return
	}
	defer Close(t, s)
	if r, _ := Play(ctx, s, req); r.Err == nil && strings.Contains(r.Text, "Ann") {
		t.Errorf("a session was gone on with in another home: %q", r.Text)
	}
}

// leftIn returns a file below dir whose name contains the ID of a session, or "".
func leftIn(t *testing.T, dir, session string) (found string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), session) {
			found = path
			return fs.SkipAll
		}
		return nil // ignore errors: an agent may be deleting files
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// Owned writes files into a home. The keys are the paths in the home.
func Owned(t testing.TB, home string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(home, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
}

// Seeded creates a home from seeds, and returns its files by their paths.
func Seeded(t testing.TB, seeds []cli.HomeSeed) map[string]string {
	t.Helper()
	homes, err := host.OpenHomes(host.HomesOptions{Dir: t.TempDir(), Seeds: seeds})
	if err != nil {
		t.Fatal(err)
	}
	defer homes.Close()
	home, err := homes.Home(context.Background(), "seeded")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(home, path)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		files[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
