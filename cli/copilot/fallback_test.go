package copilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	sim "ductor/internal/sim/agent"
)

// headless makes a program of another, run with args, that has no server.
func headless(t *testing.T, program, args string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copilot")
	script := fmt.Sprintf("#!/bin/sh\nfor a; do\n\tif [ \"$a\" = --headless ]; then\n"+
		"\t\techo \"error: unknown option '--headless'\" >&2\n\t\texit 1\n\tfi\ndone\nexec %q %s\n", program, args)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// old is a provider over the real Copilot without its server.
func old(t *testing.T) (*Provider, string) {
	t.Helper()
	p, dir, _ := real(t)
	o := p.opts
	o.Path = headless(t, o.Path, `"$@"`)
	return New(o), dir
}

func TestACopilotWithoutItsServer(t *testing.T) {
	p, dir := old(t)
	auth := p.Auth(t.Context())
	if auth.Via != "ACP" || auth.State != cli.Authenticated {
		t.Errorf("auth %+v", auth)
	}
	req := cli.Request{Dir: dir, Attended: true, Model: "gpt-5.2", Permission: cli.Ask, Prompt: `[[tool cmd="touch made"]] [[text "Done."]]`}
	s := clitest.Open(t, p, cli.Live, req)
	if info := s.Info(); info.Via != "ACP" || info.Agent != Agent || p.Shares(req) != info.PID || info.PID == 0 {
		t.Errorf("info %+v, shares %d", info, p.Shares(req))
	}
	turn := begin(t.Context(), s, req)
	asked := await[cli.ApprovalAsked](t, turn)
	if asked.Title != "touch made" {
		t.Errorf("asked %+v", asked)
	}
	if err := s.(cli.Decider).Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); err != nil {
		t.Fatal(err)
	}
	<-turn.over
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil || !strings.HasSuffix(turn.end.Text, "Done.") || turn.end.Err != nil {
		t.Errorf("%+v, %v", turn.end, err)
	}
	req.Resume, req.Prompt = turn.end.AgentSessionID, "[[error 400]]"
	if !s.Fits(req) {
		t.Error("it does not fit its next turn")
	}
	if r, _ := clitest.Play(t.Context(), s, req); r.Err == nil || r.Err.Kind != cli.Refused || r.Text != "" {
		t.Errorf("an error became %q, %+v", r.Text, r.Err)
	}
}

// What the server was used for goes on over ACP: sessions are the same.
func TestASessionOfTheServerGoesOnWithoutIt(t *testing.T) {
	p, dir, _ := real(t)
	req := cli.Request{Dir: dir, Permission: cli.Bypass, Prompt: `about the lighthouse [[text "One."]]`}
	s := clitest.Open(t, p, cli.Live, req)
	if via := s.Info().Via; via != viaServer {
		t.Errorf("the server is %q", via)
	}
	one, _ := clitest.Play(t.Context(), s, req)
	if err := s.Close(t.Context()); err != nil || one.Err != nil {
		t.Fatal(err, one.Err)
	}
	o := p.opts
	o.Path = headless(t, o.Path, `"$@"`)
	req.Resume, req.Prompt = one.AgentSessionID, "[[history]]"
	if r, _ := clitest.Play(t.Context(), clitest.Open(t, New(o), cli.Live, req), req); !strings.Contains(r.Text, "lighthouse") {
		t.Errorf("%+v", r)
	}
}

// Without server and ACP it is said what is missing.
func TestACopilotWithNeither(t *testing.T) {
	p, _ := newPeer(t, func(p *peer, m message) bool {
		p.reply(m, `{"ok":true,"protocolVersion":2,"version":"0.9"}`)
		return true
	})
	_, err := p.Open(t.Context(), cli.Live, cli.Request{Dir: t.TempDir(), Prompt: "hello"})
	if f := cli.AsFailure(Agent, err); f.Kind != cli.BadOutput || !strings.Contains(f.Sentence(), "speaks protocol 2") {
		t.Errorf("%+v", f)
	}
	if p.noServer.Load() {
		t.Error("ACP is held for the way to speak, and it is not")
	}
}

// The contract, over the scripted agent that knows ACP and no server.
func TestFallbackConformance(t *testing.T) {
	clitest.Conformance(t, clitest.Harness{
		Mode: cli.Live,
		New: func(t *testing.T) (cli.Provider, cli.Request) {
			p, dir := scripted(t)
			programs, err := sim.InstallFrom(clitest.Program(t), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			o := p.opts
			o.AllowEnv = append(o.AllowEnv, "GEMINI_API_KEY")
			env := append(o.Env(), "GEMINI_API_KEY=simulated")
			o.Env = func() []string { return env }
			o.Path, o.Grace = headless(t, programs.Gemini, "--acp"), 500*time.Millisecond
			return New(o), cli.Request{Dir: dir, Permission: cli.Bypass}
		},
		Over: over,
		Cannot: map[clitest.Case]string{
			clitest.AdoptIdle:   "no keeper asks it for the version that is installed; an idle process is ended at the next start",
			clitest.FailingTool: "the protocol has no exit codes; the real one says them in words",
			clitest.CrashInTool: "the parent of its tools is the script around it",
		},
	})
}
