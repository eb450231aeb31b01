package copilot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// playing is a running turn.
type playing struct {
	news chan cli.Event
	over chan struct{}
	end  cli.Result
}

// begin runs a turn on a goroutine of its own. news has room for all events of a test.
func begin(ctx context.Context, s cli.Session, req cli.Request) *playing {
	p := &playing{news: make(chan cli.Event, 10000), over: make(chan struct{})}
	go func() {
		defer close(p.over)
		s.Turn(ctx, req, func(ev cli.Event) {
			if r, ok := ev.(cli.Result); ok {
				p.end = r
			}
			p.news <- ev
		})
	}()
	return p
}

// await returns the next event of a type.
func await[T cli.Event](t *testing.T, p *playing) T {
	t.Helper()
	for {
		select {
		case ev := <-p.news:
			if ev, ok := ev.(T); ok {
				return ev
			}
			if r, ok := ev.(cli.Result); ok {
				t.Fatalf("the turn ended as %+v, %+v", r, r.Err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it never came")
		}
	}
}

func (p *playing) result(t *testing.T) cli.Result {
	t.Helper()
	select {
	case <-p.over:
	case <-time.After(time.Minute):
		t.Fatal("the turn never ended")
	}
	return p.end
}

func TestApprovals(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := cli.Request{Dir: dir, Attended: true, Prompt: `[[ask cmd="touch one"]] [[ask cmd="touch two"]] [[text "Both."]]`}
		s := clitest.Open(t, p, cli.Live, req)
		turn := begin(t.Context(), s, req)
		first := await[cli.ApprovalAsked](t, turn)
		if first.Tool != "bash" || first.Title != "touch one" || first.Started == "" || len(first.Input) == 0 {
			t.Errorf("asked %+v", first)
		}
		decide := s.(cli.Decider).Decide
		if err := decide(t.Context(), "nothing", cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("a decision on nothing: %v", err)
		}
		if err := decide(t.Context(), first.ID, cli.Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		second := await[cli.ApprovalAsked](t, turn)
		if err := decide(t.Context(), second.ID, cli.Decision{Reason: "not on a Sunday"}); err != nil {
			t.Fatal(err)
		}
		if err := decide(t.Context(), second.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("a second decision: %v", err)
		}
		r := turn.result(t)
		if r.Err != nil || len(r.Denials) != 1 || !strings.Contains(r.Denials[0].Reason, "not on a Sunday") || r.Denials[0].Title != "touch two" {
			t.Errorf("%+v, %+v", r, r.Err)
		}
		if _, err := os.Stat(filepath.Join(dir, "one")); err != nil {
			t.Error("what was allowed did not run")
		}
		if _, err := os.Stat(filepath.Join(dir, "two")); err == nil {
			t.Error("what was denied ran")
		}
		if err := decide(t.Context(), first.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("a decision after the turn: %v", err)
		}
	})
}

// In each of Copilot's modes, each permission mode has these results for a command and an edit if no user answers.
func TestPermissionModesUnattended(t *testing.T) {
	tests := []struct {
		mode           cli.PermissionMode
		command, edits bool
	}{
		{cli.Ask, false, false}, {cli.AcceptEdits, false, false}, {cli.Bypass, true, true},
	}
	each(t, func(t *testing.T, p *Provider, dir string) {
		for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
			for _, tt := range tests {
				t.Run(string(mode)+" "+string(tt.mode), func(t *testing.T) {
					name := string(mode) + string(tt.mode)
					ran, wrote := filepath.Join(dir, name+".ran"), filepath.Join(dir, name+".wrote")
					req := cli.Request{Dir: dir, Permission: tt.mode,
						Prompt: `[[ask cmd="touch ` + ran + `"]] [[write path="` + wrote + `" text="x"]] [[text "Done."]]`}
					r, events := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
					if r.Err != nil || r.Text != "Done." {
						t.Fatalf("%+v, %+v", r, r.Err)
					}
					if _, err := os.Stat(ran); (err == nil) != tt.command {
						t.Errorf("the command ran: %v", err == nil)
					}
					if _, err := os.Stat(wrote); (err == nil) != tt.edits {
						t.Errorf("the file was written: %v", err == nil)
					}
					changed := clitest.Of[cli.FileChanged](events)
					if tt.edits && (len(changed) != 1 || changed[0].Path != name+".wrote" || changed[0].Kind != cli.FileAdded || !strings.Contains(changed[0].Diff, "+x")) {
						t.Errorf("changes %+v", changed)
					}
					denied := 0
					for _, did := range []bool{tt.command, tt.edits} {
						if !did {
							denied++
						}
					}
					if len(r.Denials) != denied {
						t.Errorf("denials %+v, want %d", r.Denials, denied)
					}
				})
			}
		}
	})
}

func TestEditsOutsideTheDirectoriesAreAskedFor(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		elsewhere := filepath.Join(t.TempDir(), "x")
		req := cli.Request{Dir: dir, Permission: cli.AcceptEdits, Prompt: `[[write path="` + elsewhere + `" text="x"]] [[text "Done."]]`}
		r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req)
		if _, err := os.Stat(elsewhere); err == nil || r.Err != nil || len(r.Denials) != 1 {
			t.Errorf("written: %v; %+v, %+v", err == nil, r, r.Err)
		}
	})
}

func TestTheModeOfALivingSessionIsChanged(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := cli.Request{Dir: dir, Prompt: `[[ask cmd="touch one"]]`}
		s := clitest.Open(t, p, cli.Live, req)
		first, _ := clitest.Play(t.Context(), s, req)
		pid := s.Info().PID
		req.Resume, req.Permission, req.Model, req.Effort = first.AgentSessionID, cli.Bypass, "gpt-5.1", "high"
		if !s.Fits(req) {
			t.Fatal("it cannot be changed")
		}
		second, events := clitest.Play(t.Context(), s, req)
		if len(first.Denials) != 1 || len(second.Denials) != 0 || second.Err != nil || second.Model != "gpt-5.1" || s.Info().PID != pid {
			t.Errorf("%+v then %+v, %+v", first, second, second.Err)
		}
		if named := clitest.Of[cli.SessionStarted](events); len(named) != 1 || named[0].Model != "gpt-5.1" {
			t.Errorf("named %+v", named)
		}
		req.Permission, req.Prompt = cli.Ask, `[[ask cmd="touch two"]]`
		if third, _ := clitest.Play(t.Context(), s, req); len(third.Denials) != 1 {
			t.Errorf("back again: %+v", third)
		}
	})
}

func TestSteering(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := cli.Request{Dir: dir, Prompt: `[[text n=20 delay=20ms]]`}
		s := clitest.Open(t, p, cli.Live, req)
		steer := s.(cli.Steerer).Steer
		if err := steer(t.Context(), cli.Request{Prompt: "x"}); !errors.Is(err, cli.ErrNoTurn) {
			t.Errorf("before the turn: %v", err)
		}
		var turn *playing
		for n := 20; ; n *= 5 { // on a slow machine a short turn ends before the message
			req.Prompt = fmt.Sprintf("[[text n=%d delay=20ms]]", n)
			turn = begin(t.Context(), s, req)
			await[cli.TextDelta](t, turn)
			if err := steer(t.Context(), cli.Request{Prompt: `[[text "Turned."]]`}); err == nil {
				break
			} else if n > 1000 || !errors.Is(err, cli.ErrNoTurn) {
				t.Fatal(err)
			}
			req.Resume = turn.result(t).AgentSessionID
		}
		r := turn.result(t)
		if r.Err != nil || !strings.HasSuffix(r.Text, "Turned.") {
			t.Errorf("%+v, %+v", r, r.Err)
		}
		if err := steer(t.Context(), cli.Request{Prompt: "x"}); !errors.Is(err, cli.ErrNoTurn) {
			t.Errorf("after the turn: %v", err)
		}
		req.Resume, req.Prompt = r.AgentSessionID, "[[history]]"
		if next, _ := clitest.Play(t.Context(), s, req); !strings.Contains(next.Text, "1.") {
			t.Errorf("the next turn: %+v", next)
		}
	})
}

// Sessions with one environment share a process, and no others do.
func TestManySessionsInOneProcess(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		slow := cli.Request{Dir: dir, Permission: cli.Bypass, Conversation: "a", Prompt: `[[text n=40 delay=20ms]]`}
		one, two := clitest.Open(t, p, cli.Live, slow), clitest.Open(t, p, cli.Live, slow)
		if one.Info().PID != two.Info().PID || one.Info().AgentSessionID == two.Info().AgentSessionID {
			t.Fatalf("%+v and %+v", one.Info(), two.Info())
		}
		other := slow
		other.ChatID = 7
		if third := clitest.Open(t, p, cli.Live, other); third.Info().PID == one.Info().PID {
			t.Error("another environment got the same process")
		}
		endless := slow
		endless.Prompt += " [[hang]]"
		ctx, abort := context.WithCancelCause(t.Context())
		first, second := begin(ctx, one, endless), begin(t.Context(), two, slow)
		await[cli.TextDelta](t, first)
		await[cli.TextDelta](t, second)
		abort(cli.ErrAborted)
		if r := first.result(t); !r.Aborted {
			t.Errorf("the aborted one: %+v, %+v", r, r.Err)
		}
		if err := one.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if r := second.result(t); r.Err != nil || r.Aborted || len(r.Text) < 100 {
			t.Errorf("the other one: %+v, %+v", r, r.Err)
		}
		if !two.Info().Alive {
			t.Error("the process ended with the first of its sessions")
		}
	})
}

func TestFailures(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		for mode, prompts := range map[cli.Mode]map[string]cli.FailureKind{
			cli.Live: {
				"[[error 401]]": cli.NotLoggedIn, "[[error 404]]": cli.UnknownModel, "[[error 400]]": cli.Refused,
				"": cli.Refused, "a\x00b": cli.Refused,
			},
			cli.OneShot: {"[[error 401]]": cli.NotLoggedIn, "": cli.Refused, "a\x00b": cli.Refused}, // 400 is in the suite
		} {
			req := cli.Request{Dir: dir}
			s := clitest.Open(t, p, mode, req)
			for prompt, want := range prompts {
				req.Prompt = prompt
				r, _ := clitest.Play(t.Context(), s, req)
				if r.Err == nil || r.Err.Kind != want {
					t.Errorf("%s %q: %+v", mode, prompt, r.Err)
				}
			}
		}
	})
}

func TestASessionThatIsNotThere(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := cli.Request{Dir: dir, Prompt: "hello", Resume: "11111111-2222-3333-4444-555555555555"}
		_, err := p.Open(t.Context(), cli.Live, req)
		var f *cli.Failure
		if !errors.As(err, &f) || f.Kind != cli.ResumeFailed {
			t.Errorf("live: %v", err)
		}
		if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.OneShot, req), req); r.Err == nil || r.Err.Kind != cli.ResumeFailed {
			t.Errorf("one-shot: %+v", r.Err)
		}
	})
}

// Texts that a command line would interpret reach the model unchanged.
func TestPromptsReachTheModelAsText(t *testing.T) {
	realagent.LongOnly(t)
	p, dir, api := real(t)
	long := strings.Repeat("long ", 48<<10) + "[[text ok]]"
	for mode, prompts := range map[cli.Mode]map[string]string{
		cli.Live: {
			"a flag": "--allow-all [[text ok]]", "a dash": "- [[text ok]]", "a slash": "/clear [[text ok]]",
			"a bang": "!touch x [[text ok]]", "240 KB": long,
		},
		cli.OneShot: { // one process each
			"a flag": "--allow-all [[text ok]]", "a slash": "/clear [[text ok]]",
			"a bang": "!touch x [[text ok]]", "a dash and 240 KB": "- " + long,
		},
	} {
		req := cli.Request{Dir: dir}
		s := clitest.Open(t, p, mode, req)
		for name, prompt := range prompts {
			req.Prompt, req.Resume = prompt, s.Info().AgentSessionID
			r, _ := clitest.Play(t.Context(), s, req)
			if r.Err != nil || r.Text != "ok" {
				t.Errorf("%s, %s: %q, %v", mode, name, r.Text, r.Err)
				continue
			}
			requests := api.Prompts()
			if got := requests[len(requests)-1].Prompt; strings.TrimSpace(got) != strings.TrimSpace(prompt) {
				t.Errorf("%s, %s: the model read %.80q (%d bytes), not %d bytes", mode, name, got, len(got), len(prompt))
			}
		}
	}
}

func TestSystemPromptsReachTheModel(t *testing.T) {
	realagent.LongOnly(t)
	p, dir, api := real(t)
	for name, req := range map[string]cli.Request{
		"added": {AppendPrompt: "Speak like a pirate."}, "instead": {SystemPrompt: "Speak like a pirate."},
	} {
		req.Dir, req.Prompt = dir, "hello [[text ok]]"
		if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req); r.Err != nil {
			t.Fatalf("%s: %v", name, r.Err)
		}
		requests := api.Prompts()
		system := requests[len(requests)-1].System
		if !strings.Contains(system, "Speak like a pirate.") || (len(system) < 1000) != (name == "instead") {
			t.Errorf("%s: %d bytes, %.100q", name, len(system), system)
		}
	}
}

func TestModelsAndLogin(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, _ string) {
		models, err := p.Models(t.Context())
		if err != nil || len(models) == 0 || models[0].ID == "" || models[0].Agent != Agent || !models[0].Default {
			t.Fatalf("%+v, %v", models, err)
		}
		if auth := p.Auth(t.Context()); auth.State != cli.Authenticated || auth.Version != "1.0.102" || auth.Method == "" {
			t.Errorf("auth %+v", auth)
		}
	})
}

func TestNotLoggedIn(t *testing.T) {
	p, dir := scripted(t)
	p.opts.Env = func() []string {
		return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GORACE=atexit_sleep_ms=0"}
	}
	if auth := p.Auth(t.Context()); auth.State != cli.Installed || auth.Fix == "" {
		t.Errorf("auth %+v", auth)
	}
	if models, err := p.Models(t.Context()); err == nil {
		t.Errorf("models %+v", models)
	}
	req := cli.Request{Dir: dir, Prompt: "hello"}
	if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.OneShot, req), req); r.Err == nil || r.Err.Kind != cli.NotLoggedIn {
		t.Errorf("turn %+v", r.Err)
	}
}

func TestACopilotThatIsNotThere(t *testing.T) {
	p, dir := scripted(t)
	p.opts.Path = filepath.Join(dir, "copilot")
	if auth := p.Auth(t.Context()); auth.State != cli.NotFound || auth.Fix == "" {
		t.Errorf("auth %+v", auth)
	}
	req := cli.Request{Dir: dir, Prompt: "hello"}
	var f *cli.Failure
	if _, err := p.Open(t.Context(), cli.Live, req); !errors.As(err, &f) || f.Kind != cli.NotInstalled {
		t.Errorf("live: %v", err)
	}
	if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.OneShot, req), req); r.Err == nil || r.Err.Kind != cli.NotInstalled {
		t.Errorf("one-shot: %+v", r.Err)
	}
}
