package codex

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	sim "ductor/internal/sim/agent"
	"ductor/internal/sim/modelapi"
)

// The test binary is also the scripted agent of these sessions.
func TestMain(m *testing.M) { clitest.AgentMain(m) }

// each runs f with the scripted Codex and with the real one, which must behave alike.
func each(t *testing.T, f func(t *testing.T, p *Provider, dir string)) {
	t.Run("scripted", func(t *testing.T) {
		p, dir := scripted(t)
		f(t, p, dir)
	})
	t.Run("real", func(t *testing.T) {
		realagent.LongOnly(t)
		p, dir, _ := real(t)
		f(t, p, dir)
	})
}

func scripted(t *testing.T) (*Provider, string) {
	t.Helper()
	return New(Options{
		ProviderOptions: clitest.Scripted(t, func(p sim.Programs) string { return p.Codex }, "OPENAI_API_KEY=dummy"),
	}), t.TempDir()
}

func real(t *testing.T) (*Provider, string, *modelapi.Server) {
	t.Helper()
	api := realagent.Model(t, realagent.Key)
	c := realagent.Codex(t, api.URL())
	return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: clitest.Host(t), Path: c.Path, Env: c.Environ}}), c.Work, api
}

func open(t *testing.T, p *Provider, req cli.Request) cli.Session {
	t.Helper()
	return clitest.Open(t, p, cli.OneShot, req)
}

func TestAnAnswerAndAToolCall(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := cli.Request{Dir: dir, Permission: cli.AcceptEdits, Prompt: `[[text "I will look."]] [[tool cmd="echo hi; exit 3"]] [[text "It **failed**."]]`}
		r, events := clitest.Play(t.Context(), open(t, p, req), req)
		if r.Err != nil || r.Text != "It **failed**." || r.AgentSessionID == "" || r.Consumed.Usage.Output == 0 {
			t.Fatalf("result %+v", r)
		}
		starts, ends := clitest.Of[cli.ToolStarted](events), clitest.Of[cli.ToolEnded](events)
		if len(starts) != 1 || len(ends) != 1 || starts[0].Title != "echo hi; exit 3" || starts[0].Name != "shell" {
			t.Fatalf("tools %+v %+v", starts, ends)
		}
		if e := ends[0]; e.ExitCode == nil || *e.ExitCode != 3 || strings.TrimSpace(e.Output) != "hi" || e.Duration <= 0 || e.Err == "" {
			t.Errorf("tool ended as %+v", e)
		}
		if think := clitest.Of[cli.ThinkingDelta](events); len(think) == 0 || think[0].Text != "I will look." {
			t.Errorf("what announces a tool is shown as %+v", think)
		}
	})
}

func TestTheNextProcessResumesTheThread(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := cli.Request{Dir: dir, Prompt: "remember the lighthouse [[text ok]]"}
		first, _ := clitest.Play(t.Context(), open(t, p, req), req)
		req.Resume, req.Prompt = first.AgentSessionID, "and now? [[history]]"
		second, _ := clitest.Play(t.Context(), open(t, p, req), req)
		if second.Err != nil || second.AgentSessionID != first.AgentSessionID || !strings.Contains(second.Text, "remember the lighthouse") {
			t.Fatalf("%+v", second)
		}
		one, two := first.Consumed.Usage, second.Consumed.Usage
		if two.Output >= one.Output+two.Output || two.Input < 0 {
			t.Errorf("usage is a running total: %+v then %+v", one, two)
		}
	})
}

func TestAnUnknownThreadIsAFailedResume(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := cli.Request{Dir: dir, Prompt: "hello", Resume: "11111111-2222-3333-4444-555555555555"}
		r, _ := clitest.Play(t.Context(), open(t, p, req), req)
		if r.Err == nil || r.Err.Kind != cli.ResumeFailed {
			t.Errorf("%+v", r.Err)
		}
	})
}

func TestErrorsOfTheModel(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		for prompt, want := range map[string]cli.FailureKind{
			"[[error 401 times=9]]": cli.NotLoggedIn, "[[error 429]]": cli.LimitReached, "[[error 400]]": cli.Refused,
		} {
			req := cli.Request{Dir: dir, Prompt: prompt}
			began := time.Now()
			r, _ := clitest.Play(t.Context(), open(t, p, req), req)
			if r.Err == nil || r.Err.Kind != want {
				t.Errorf("%s: %+v", prompt, r.Err)
			}
			t.Logf("%s seen after %s", prompt, time.Since(began).Round(time.Millisecond))
		}
	})
}

func TestAnAbortLeavesNothingBehind(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		mark := filepath.Join(dir, "alive")
		req := cli.Request{Dir: dir, Permission: cli.Bypass, Prompt: `[[tool cmd="setsid sh -c 'touch alive; sleep 600' & sleep 600"]]`}
		ctx, cancel := context.WithCancelCause(t.Context())
		s := open(t, p, req)
		go func() {
			for ctx.Err() == nil {
				if _, err := os.Stat(mark); err == nil {
					cancel(cli.ErrAborted)
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
		r, _ := clitest.Play(ctx, s, req)
		if !r.Aborted || r.Err != nil {
			t.Errorf("%+v", r)
		}
		if left := livingIn(t, dir); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

// livingIn lists processes whose working directory is dir.
func livingIn(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var living []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == dir {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			living = append(living, strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return living
}

// Texts that a command line would interpret reach the model unchanged.
func TestPromptsReachTheModelAsText(t *testing.T) {
	p, dir, api := real(t)
	for name, prompt := range map[string]string{
		"a flag": "--dangerously-bypass-approvals-and-sandbox [[text ok]]", "a dash": "- [[text ok]]", "a slash": "/clear [[text ok]]",
		"240 KB": strings.Repeat("long ", 48<<10) + "[[text ok]]",
	} {
		req := cli.Request{Dir: dir, Prompt: prompt}
		r, _ := clitest.Play(t.Context(), open(t, p, req), req)
		if r.Err != nil || r.Text != "ok" {
			t.Errorf("%s: %q, %v", name, r.Text, r.Err)
		}
		requests := api.Requests()
		if got := requests[len(requests)-1].Prompt; strings.TrimSpace(got) != strings.TrimSpace(prompt) {
			t.Errorf("%s: the model read %.80q (%d bytes), not %d bytes", name, got, len(got), len(prompt))
		}
	}
}

func TestModelsAndLogin(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, _ string) {
		models, err := p.Models(t.Context())
		if err != nil || len(models) == 0 {
			t.Fatalf("%d models, %v", len(models), err)
		}
		defaults := 0
		for _, m := range models {
			if m.ID == "" || m.Name == "" || m.Agent != Agent {
				t.Errorf("model %+v", m)
			}
			if m.Default {
				defaults++
			}
		}
		if defaults != 1 || len(models[0].Efforts) == 0 {
			t.Errorf("%d defaults; %+v", defaults, models[0])
		}
		auth := p.Auth(t.Context())
		if auth.State != cli.Authenticated || auth.Version == "" || auth.Method == "" {
			t.Errorf("auth %+v", auth)
		}
	})
}

func TestACodexThatIsNotThere(t *testing.T) {
	p := New(Options{ProviderOptions: cli.ProviderOptions{Launcher: clitest.Host(t), Path: filepath.Join(t.TempDir(), "codex")}})
	if auth := p.Auth(t.Context()); auth.State != cli.NotFound || auth.Fix == "" {
		t.Errorf("auth %+v", auth)
	}
	if models, err := p.Models(t.Context()); err == nil || len(models) > 0 {
		t.Errorf("models %v, %v", models, err)
	}
	req := cli.Request{Dir: t.TempDir(), Prompt: "hello"}
	if r, _ := clitest.Play(t.Context(), open(t, p, req), req); r.Err == nil || r.Err.Kind != cli.NotInstalled {
		t.Errorf("turn %+v", r)
	}
}

func TestSystemPromptsAreMergedIntoThePrompt(t *testing.T) {
	got, err := execInput(cli.Request{SystemPrompt: "be brief", AppendPrompt: "be kind", Prompt: "hello"}, nil)
	want := "<instructions>\nbe brief\n</instructions>\n\n<instructions>\nbe kind\n</instructions>\n\nhello"
	if string(got) != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
