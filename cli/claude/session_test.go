package claude

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// variants runs f for each way to run a turn. All must have the same result.
func variants(t *testing.T, f func(t *testing.T, p *Provider, mode cli.Mode, dir string)) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			p, dir := scripted(t, nil)
			f(t, p, mode, dir)
		})
	}
}

func TestTurnsOfOneSession(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		req := cli.Request{Dir: dir, Prompt: `first question [[text "**One**" chunk=2]]`}
		s := clitest.Open(t, p, mode, req)
		one, events := clitest.Play(t.Context(), s, req)
		if one.Err != nil || one.Text != "**One**" {
			t.Fatalf("first turn: %q, %v", one.Text, one.Err)
		}
		if _, ok := events[0].(cli.SessionStarted); !ok {
			t.Errorf("first event is %#v", events[0])
		}
		req.Prompt, req.Resume = "[[history]]", one.AgentSessionID
		if !s.Fits(req) {
			t.Error("the session does not fit its own next turn")
		}
		two, _ := clitest.Play(t.Context(), s, req)
		if !strings.Contains(two.Text, "first question") || two.AgentSessionID != one.AgentSessionID {
			t.Errorf("second turn: %q in session %q after %q, %v", two.Text, two.AgentSessionID, one.AgentSessionID, two.Err)
		}
		req.Resume = ""
		if s.Fits(req) {
			t.Error("a request for a new session fits the old one")
		}
	})
}

func TestResumeInANewProcess(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		req := cli.Request{Dir: dir, Prompt: "remember the lighthouse [[text ok]]"}
		first := clitest.Open(t, p, mode, req)
		one, _ := clitest.Play(t.Context(), first, req)
		must(t, first.Close(t.Context()))
		req.Prompt, req.Resume = "[[history]]", one.AgentSessionID
		two, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
		if !strings.Contains(two.Text, "lighthouse") {
			t.Errorf("got %q, %v", two.Text, two.Err)
		}
	})
}

func TestResumeOfAnUnknownSession(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		req := cli.Request{Dir: dir, Prompt: "hi", Resume: "11111111-2222-4333-8444-555555555555"}
		r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
		if r.Err == nil || r.Err.Kind != cli.ResumeFailed {
			t.Errorf("got %+v", r.Err)
		}
	})
}

// A process that could not resume its session reports that at once and ends, possibly long before the first turn.
func TestResumeFailureSeenBeforeTheTurn(t *testing.T) {
	p, dir := scripted(t, nil)
	req := cli.Request{Dir: dir, Prompt: "hi", Resume: "11111111-2222-4333-8444-555555555555"}
	s := clitest.Open(t, p, cli.Live, req)
	<-s.(*live).run.stream.Ended()
	if r, _ := clitest.Play(t.Context(), s, req); r.Err == nil || r.Err.Kind != cli.ResumeFailed {
		t.Errorf("got %+v", r.Err)
	}
}

func TestPromptsReachTheModelAsText(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		prompts := []string{"-p is a flag", "--dangerously-skip-permissions", "two\nlines", strings.Repeat("long ", 48<<10) + "end"}
		// in one-shot mode the scripted agent trims text that the real one preserves; see real_test.go
		if mode == cli.Live {
			prompts = append(prompts, "/compact is a word")
		}
		for _, prompt := range prompts {
			req := cli.Request{Dir: dir, Prompt: prompt + " [[text ok]]"}
			s := clitest.Open(t, p, mode, req)
			one, _ := clitest.Play(t.Context(), s, req)
			req.Prompt, req.Resume = "[[history]]", one.AgentSessionID
			two, _ := clitest.Play(t.Context(), s, req)
			if one.Text != "ok" || !strings.Contains(two.Text, prompt) {
				t.Errorf("%.40q: answer %.40q, %v; the model got %.60q", prompt, one.Text, one.Err, two.Text)
			}
		}
	})
}

func TestToolsAreShown(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			p, dir := scripted(t, nil)
			req := cli.Request{Dir: dir, Permission: cli.Bypass,
				Prompt: `[[text "Let me look."]] [[tool cmd="echo hi; exit 3"]] [[write path="a.txt" text="new"]] [[text "Done."]]`}
			r, events := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
			starts, ends := clitest.Of[cli.ToolStarted](events), clitest.Of[cli.ToolEnded](events)
			if len(starts) != 2 || len(ends) != 2 {
				t.Fatalf("%d tools started, %d ended: %v", len(starts), len(ends), r.Err)
			}
			if starts[0].Title != "echo hi; exit 3" || ends[0].ExitCode == nil || *ends[0].ExitCode != 3 || !strings.Contains(ends[0].Output, "hi") {
				t.Errorf("shell: %+v, %+v", starts[0], ends[0])
			}
			changes := clitest.Of[cli.FileChanged](events)
			if len(changes) != 1 || changes[0].Path != "a.txt" || !strings.Contains(changes[0].Diff, "+new") {
				t.Errorf("changes %+v", changes)
			}
			if r.Text != "Let me look.\n\nDone." {
				t.Errorf("answer %q", r.Text)
			}
		})
	}
}

func TestDeniedTool(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			p, dir := scripted(t, nil)
			req := cli.Request{Dir: dir, Prompt: `[[ask cmd="touch forbidden"]] [[text "I could not."]]`}
			r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
			if r.Err != nil || r.Text != "I could not." {
				t.Errorf("got %q, %v", r.Text, r.Err)
			}
			if len(r.Denials) != 1 || r.Denials[0].Tool != "Bash" || r.Denials[0].Title != "touch forbidden" || r.Denials[0].Reason == "" {
				t.Errorf("denials %+v", r.Denials)
			}
			if _, err := os.Stat(filepath.Join(dir, "forbidden")); err == nil {
				t.Error("the command ran all the same")
			}
		})
	}
}

func TestBypassLetsToolsRun(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		req := cli.Request{Dir: dir, Permission: cli.Bypass, Prompt: `[[ask cmd="touch wanted"]] [[text ok]]`}
		r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
		if _, err := os.Stat(filepath.Join(dir, "wanted")); err != nil || len(r.Denials) > 0 {
			t.Errorf("%v, denials %+v, failure %v", err, r.Denials, r.Err)
		}
	})
}

func TestImagesGoAlong(t *testing.T) {
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.png")
	must(t, os.WriteFile(path, png, 0o600))
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		req := cli.Request{Dir: dir, Prompt: "what is this [[text seen]]", Images: []cli.Image{{Path: path, MIME: "image/png"}}}
		if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req); r.Text != "seen" {
			t.Errorf("got %q, %v", r.Text, r.Err)
		}
		req.Images[0].Path = "/nonexistent.png"
		if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req); r.Err == nil || r.Err.Kind != cli.Refused {
			t.Errorf("a picture that is gone: %+v", r)
		}
	})
}

func TestEmptyPromptIsRefused(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		req := cli.Request{Dir: dir, Prompt: " \n"}
		if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req); r.Err == nil || r.Err.Kind != cli.Refused {
			t.Errorf("got %+v", r)
		}
	})
}

func TestAPIFailures(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		for prompt, want := range map[string]cli.FailureKind{
			"[[error 401]]":           cli.NotLoggedIn,
			"[[error 404]]":           cli.UnknownModel,
			"[[error 400]]":           cli.Refused,
			"[[error 529 delay=1ms]]": cli.Overloaded,
		} {
			req := cli.Request{Dir: dir, Prompt: prompt}
			r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
			if r.Err == nil || r.Err.Kind != want || r.Text != "" {
				t.Errorf("%s: got %+v and %q, want %s", prompt, r.Err, r.Text, want)
			}
		}
	})
}

func TestBrokenAgents(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		for prompt, want := range map[string]cli.FailureKind{
			"[[crash code=3]]":                  cli.Crashed,
			"[[silent]]":                        cli.Crashed,
			"[[garbage bytes=2000]] [[silent]]": cli.BadOutput,
		} {
			req := cli.Request{Dir: dir, Prompt: prompt}
			r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
			if r.Err == nil || r.Err.Kind != want {
				t.Errorf("%s: got %+v, want %s", prompt, r.Err, want)
			}
		}
	})
}

func TestAbort(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		req := cli.Request{Dir: dir, Prompt: `[[text "half"]] [[tool cmd="sleep 60"]] [[text never]]`}
		s := clitest.Open(t, p, mode, req)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var last cli.Event
		s.Turn(ctx, req, func(ev cli.Event) {
			if _, ok := ev.(cli.ToolStarted); ok {
				cancel(cli.ErrAborted)
			}
			last = ev
		})
		r, _ := last.(cli.Result)
		if !r.Aborted || r.Err != nil {
			t.Errorf("got %+v", r)
		}
		if r.Text != "half" {
			t.Errorf("what was said is gone: %q", r.Text)
		}
	})
}

func TestNextTurnAfterAnAbort(t *testing.T) {
	p, dir := scripted(t, nil)
	req := cli.Request{Dir: dir, Prompt: `[[text "half"]] [[hang]]`}
	s := clitest.Open(t, p, cli.Live, req)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	s.Turn(ctx, req, func(ev cli.Event) {
		if _, ok := ev.(cli.TextDelta); ok {
			cancel(cli.ErrAborted)
		}
	})
	req.Prompt = "[[text again]]"
	if r, _ := clitest.Play(t.Context(), s, req); r.Text != "again" || r.Err != nil {
		t.Errorf("got %q, %v", r.Text, r.Err)
	}
}

func TestStallEndsTheTurn(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			var r cli.Result
			// On a slow machine, the agent needs more time until it prints text.
			for stall := 3 * time.Second; r.Text == "" && stall < 2*time.Minute; stall *= 2 {
				p, dir := scripted(t, func(o *Options) { o.Stall = stall })
				req := cli.Request{Dir: dir, Prompt: `[[text "half"]] [[hang]]`}
				r, _ = clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
			}
			if r.Err == nil || r.Err.Kind != cli.TimedOut || r.Text != "half" {
				t.Errorf("got %q, %+v", r.Text, r.Err)
			}
		})
	}
}

// A live process that died between turns is replaced by one that continues its session.
func TestProcessThatDiedIsReplaced(t *testing.T) {
	p, dir := scripted(t, nil)
	req := cli.Request{Dir: dir, Prompt: "remember the lighthouse [[text ok]]"}
	s := clitest.Open(t, p, cli.Live, req)
	one, _ := clitest.Play(t.Context(), s, req)
	before := s.Info()
	if !before.Alive || before.PID == 0 || before.AgentSessionID != one.AgentSessionID {
		t.Errorf("before: %+v", before)
	}
	run := s.(*live).run
	must(t, run.stream.Process().Stop(t.Context(), time.Second))
	<-run.stream.Ended()
	if s.Info().Alive {
		t.Error("a dead process passes for alive")
	}
	req.Prompt, req.Resume = "[[history]]", one.AgentSessionID
	two, _ := clitest.Play(t.Context(), s, req)
	if !strings.Contains(two.Text, "lighthouse") || two.AgentSessionID != one.AgentSessionID {
		t.Errorf("got %q, %v", two.Text, two.Err)
	}
	if after := s.Info(); !after.Alive || after.PID == before.PID {
		t.Errorf("after: %+v", after)
	}
}

func TestCostOfEachTurn(t *testing.T) {
	p, dir := scripted(t, nil)
	req := cli.Request{Dir: dir, Prompt: "[[text a]] [[usage in=100 out=10 cost=0.5]]"}
	s := clitest.Open(t, p, cli.Live, req)
	for turn := range 3 {
		r, _ := clitest.Play(t.Context(), s, req)
		used := r.Consumed
		if used.CostUSD < 0.499 || used.CostUSD > 0.501 || used.Usage.Input != 100 || used.Usage.Output != 10 {
			t.Errorf("turn %d consumed %+v", turn, used)
		}
	}
}

func TestFits(t *testing.T) {
	p, dir := scripted(t, nil)
	base := cli.Request{Dir: dir, Model: "opus", Permission: cli.Ask, ChatID: 7}
	s := clitest.Open(t, p, cli.Live, base)
	if !s.Fits(base) {
		t.Error("a fresh session does not fit the request it was opened for")
	}
	for name, change := range map[string]func(*cli.Request){
		"permission":    func(r *cli.Request) { r.Permission = cli.Bypass },
		"directory":     func(r *cli.Request) { r.Dir = "/" },
		"directories":   func(r *cli.Request) { r.AddDirs = []string{"/tmp"} },
		"system prompt": func(r *cli.Request) { r.SystemPrompt = "be brief" },
		"tools":         func(r *cli.Request) { r.AllowedTools = []string{"Edit"} },
		"mcp":           func(r *cli.Request) { r.Servers = []cli.ToolServer{{Name: "own", Path: "/own"}} },
		"chat":          func(r *cli.Request) { r.ChatID = 8 },
		"environment":   func(r *cli.Request) { r.Env = map[string]string{"A": "b"} },
		"extra":         func(r *cli.Request) { r.ExtraArgs = []string{"--bare"} },
		"session":       func(r *cli.Request) { r.Resume = "11111111-2222-4333-8444-555555555555" },
	} {
		req := base
		change(&req)
		if s.Fits(req) {
			t.Errorf("fits in spite of another %s", name)
		}
	}
	for name, change := range map[string]func(*cli.Request){
		"the turn":   func(r *cli.Request) { r.Prompt, r.Turn, r.Timeout = "another", "T2", time.Minute },
		"the model":  func(r *cli.Request) { r.Model = "sonnet" },
		"the effort": func(r *cli.Request) { r.Effort = "high" },
		"permission": func(r *cli.Request) { r.Permission = cli.Plan },
		"attendance": func(r *cli.Request) { r.Attended = true },
	} {
		req := base
		change(&req)
		if !s.Fits(req) {
			t.Errorf("%s binds the session, although Claude can be told of another", name)
		}
	}
}

func TestNotInstalled(t *testing.T) {
	variants(t, func(t *testing.T, p *Provider, mode cli.Mode, dir string) {
		p.opts.Path = filepath.Join(dir, "no-such-claude")
		req := cli.Request{Dir: dir, Prompt: "hi"}
		s, err := p.Open(t.Context(), mode, req)
		failure := cli.AsFailure("claude", err)
		if err == nil {
			defer s.Close(t.Context())
			r, _ := clitest.Play(t.Context(), s, req)
			failure = r.Err
		}
		if failure == nil || failure.Kind != cli.NotInstalled {
			t.Errorf("got %+v", failure)
		}
		if a := p.Auth(t.Context()); a.State != cli.NotFound || a.Fix == "" {
			t.Errorf("auth %+v", a)
		}
	})
}
