package claude

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
)

// A shell, a parser of flags or a template would change these prompts.
const (
	replacing = "--bare is a word\nYou «keep» secrets: $HOME \"`x`\"\n\n"
	adding    = "- be brief, tulip\n  and kind  "
)

// privately makes p use a directory of this test for its prompt files.
func privately(t *testing.T, p *Provider) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "prompts")
	p.opts.PromptDir = dir
	return dir
}

// kept lists the files of a directory. A missing directory is empty.
func kept(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// commandLine returns the command line of a process. It is empty for a moment while the process executes its program, so
// commandLine waits.
func commandLine(t *testing.T, pid int) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > 0 {
			return string(raw)
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d has no command line", pid)
		}
	}
}

// inspect examines the public and the private data of the process of s.
func inspect(t *testing.T, s cli.Session) {
	t.Helper()
	raw := commandLine(t, s.Info().PID)
	args := strings.Split(raw, "\x00")
	for line := range strings.Lines(replacing + adding) {
		for word := range strings.FieldsSeq(line) {
			if len(word) > 4 && strings.Contains(raw, word) {
				t.Errorf("everybody can read %q: %q", word, args)
			}
		}
	}
	for flag, want := range map[string]string{"--system-prompt-file": replacing, "--append-system-prompt-file": adding} {
		i := slices.Index(args, flag)
		if i < 0 {
			t.Errorf("no %s in %q", flag, args)
			continue
		}
		path := args[i+1]
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q: %v", flag, got, err)
		}
		for path, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("%s has mode %v: %v", path, info.Mode(), err)
			}
		}
	}
}

// noting is a launcher that records which files programs must read.
type noting struct {
	cli.Launcher
	files *[]string
}

func (l noting) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	*l.files = append(*l.files, cmd.Files...)
	return l.Launcher.Start(ctx, cmd)
}

func TestSystemPromptsAreInNoCommandLine(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			p, dir := scripted(t, nil)
			prompts := privately(t, p)
			var told []string
			p.opts.Launcher = noting{p.opts.Launcher, &told}
			gate := filepath.Join(dir, "gate")
			req := cli.Request{Dir: dir, SystemPrompt: replacing, AppendPrompt: adding, Permission: cli.Bypass,
				Prompt: `[[tool cmd="until [ -e ` + gate + ` ]; do sleep 0.01; done"]] [[text ok]]`}
			s := clitest.Open(t, p, mode, req)
			var last cli.Event
			s.Turn(t.Context(), req, func(ev cli.Event) {
				if _, ok := ev.(cli.ToolStarted); ok {
					inspect(t, s)
					must(t, os.WriteFile(gate, nil, 0o600))
				}
				last = ev
			})
			if r, _ := last.(cli.Result); r.Err != nil || r.Text != "ok" {
				t.Errorf("got %q, %v", r.Text, r.Err)
			}
			if len(told) != 2 || filepath.Dir(told[0]) != prompts {
				t.Errorf("the launcher is told of %q", told)
			}
			must(t, s.Close(t.Context()))
		})
	}
}

// Processes with the same prompts share their files. If an agent changes a file, the next process does not see the
// change.
func TestPromptFilesAreShared(t *testing.T) {
	p, dir := scripted(t, nil)
	prompts := privately(t, p)
	req := cli.Request{Dir: dir, SystemPrompt: replacing, AppendPrompt: adding, Prompt: "[[text ok]]"}
	clitest.Open(t, p, cli.Live, req)
	first := kept(t, prompts)
	for _, name := range first {
		must(t, os.WriteFile(filepath.Join(prompts, name), []byte("tell all"), 0o600))
	}
	s := clitest.Open(t, p, cli.Live, req)
	inspect(t, s)
	if now := kept(t, prompts); len(first) != 2 || !slices.Equal(first, now) {
		t.Errorf("files %q, then %q", first, now)
	}
}

func TestPromptsThatCannotBeWritten(t *testing.T) {
	p, dir := scripted(t, nil)
	p.opts.PromptDir = filepath.Join(dir, "file")
	must(t, os.WriteFile(p.opts.PromptDir, nil, 0o600))
	req := cli.Request{Dir: dir, SystemPrompt: replacing, Prompt: "[[text ok]]"}
	_, err := p.Open(t.Context(), cli.Live, req)
	if f := cli.AsFailure(agent, err); f == nil || f.Kind != cli.UnknownFailure || strings.Contains(f.Error(), "secrets") {
		t.Errorf("got %v", err)
	}
	req.SystemPrompt = ""
	if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req); r.Err != nil {
		t.Errorf("without a prompt there is nothing to write, but: %v", r.Err)
	}
}

// Claude rejects two prompts of a kind. The one configured for every turn has precedence, like the last flag.
func TestExtraArgumentsWinOverSystemPrompts(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	must(t, os.WriteFile(own, []byte("mine"), 0o600))
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		prompts := privately(t, p)
		req := cli.Request{Dir: dir, SystemPrompt: replacing, AppendPrompt: adding, Prompt: "[[text ok]]",
			ExtraArgs: []string{"--append-system-prompt=mine", "--system-prompt-file", own}}
		if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req); r.Err != nil || r.Text != "ok" {
			t.Errorf("got %q, %v", r.Text, r.Err)
		}
		if left := kept(t, prompts); len(left) > 0 {
			t.Errorf("files %q that nobody reads", left)
		}
	})
}

func TestRealSystemPromptsReachTheModel(t *testing.T) {
	realagent.LongOnly(t)
	realVariants(t, func(t *testing.T, p *Provider, mode cli.Mode, c realagent.CLI, api *modelapi.Server) {
		privately(t, p)
		req := cli.Request{Dir: c.Work, SystemPrompt: replacing, AppendPrompt: adding, Prompt: "[[text ok]]"}
		s := clitest.Open(t, p, mode, req)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var last cli.Event
		s.Turn(ctx, req, func(ev cli.Event) {
			if _, ok := ev.(cli.SessionStarted); ok {
				inspect(t, s)
			}
			last = ev
		})
		r, _ := last.(cli.Result)
		asked := api.Prompts()
		if r.Err != nil || r.Text != "ok" || len(asked) == 0 {
			t.Fatalf("got %q, %+v, asked %d times", r.Text, r.Err, len(asked))
		}
		at := strings.Index(asked[0].System, replacing)
		if at < 0 || !strings.Contains(asked[0].System[at:], adding) {
			t.Errorf("the model was told %q", asked[0].System)
		}
		if mode == cli.Live {
			// A resumed session gets its prompts again, from other files.
			req.Prompt, req.Resume, req.AppendPrompt = "[[text again]]", r.AgentSessionID, "now in verse"
			if s.Fits(req) {
				t.Error("a process fits that was told something else")
			}
			if r, _ := clitest.Play(ctx, clitest.Open(t, p, mode, req), req); r.Err != nil {
				t.Fatal(r.Err)
			}
			if asked := api.Prompts(); !strings.Contains(asked[len(asked)-1].System, "now in verse") {
				t.Errorf("the model was told %q", asked[len(asked)-1].System)
			}
		}
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
