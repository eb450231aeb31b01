package acp

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// Processes of an aborted turn end with the turn, although they left the turn's group, and although the agent's process
// serves another conversation, which is resumed in another process.
func TestAnAbortLeavesNothingOfATurnInASharedProcess(t *testing.T) {
	agents := map[string]func(t *testing.T) (*Provider, string){
		"scripted": func(t *testing.T) (*Provider, string) { return scripted(t, nil) },
		"real Copilot": func(t *testing.T) (*Provider, string) {
			realagent.LongOnly(t)
			p, dir, _ := realCopilot(t, nil)
			return p, dir
		},
	}
	for name, agent := range agents {
		t.Run(name, func(t *testing.T) {
			p, dir := agent(t)
			other := cli.Request{Dir: dir, Permission: cli.Bypass, Prompt: `about the lighthouse [[text "One."]]`}
			beside := open(t, p, other)
			one, _ := clitest.Play(t.Context(), beside, other)
			if pid := abortWithDaemon(t, p, beside, dir); clitest.Alive(pid) || beside.Info().Alive {
				t.Errorf("the daemon %d lives: %v; its process takes turns: %v",
					pid, clitest.Alive(pid), beside.Info().Alive)
			}
			other.Resume, other.Prompt = one.AgentSessionID, "[[history]]"
			if r, _ := clitest.Play(t.Context(), open(t, p, other), other); !strings.Contains(r.Text, "lighthouse") {
				t.Errorf("%+v, %+v", r, r.Err)
			}
		})
	}
}

// A turn of another conversation is not disturbed: the process ends after it.
func TestAnAbortLeavesTheTurnsOfOthersAlone(t *testing.T) {
	p, dir := scripted(t, nil)
	other := cli.Request{Dir: dir, Permission: cli.Bypass, Prompt: `[[tool cmd="until [ -e go ]; do sleep 0.01; done"]] [[text "Done."]]`}
	beside := open(t, p, other)
	turn := begin(t, beside, other)
	until[cli.ToolStarted](turn)
	pid := abortWithDaemon(t, p, beside, dir)
	if !clitest.Alive(pid) {
		t.Error("the process was ended under the other turn, or the daemon is not what it should be")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := until[cli.Result](turn); r.Err != nil || !strings.HasSuffix(r.Text, "Done.") {
		t.Errorf("%+v, %+v", r, r.Err)
	}
	for range turn.events { // it is over when Turn returns
	}
	if clitest.Alive(pid) {
		t.Errorf("the daemon %d lives", pid)
	}
}

// An abort of a turn without tools ends nothing of other conversations.
func TestAnAbortWithoutToolsLeavesTheProcess(t *testing.T) {
	p, dir := scripted(t, nil)
	req := cli.Request{Dir: dir, Permission: cli.Bypass, Prompt: `[[text "One."]]`}
	beside := open(t, p, req)
	talk := cli.Request{Dir: dir, Permission: cli.Bypass, Prompt: `[[text "half"]] [[hang]]`}
	s := open(t, p, talk)
	turn := begin(t, s, talk)
	until[cli.TextDelta](turn)
	turn.cancel(cli.ErrAborted)
	if r := until[cli.Result](turn); !r.Aborted {
		t.Errorf("%+v", r)
	}
	if r, _ := clitest.Play(t.Context(), beside, req); r.Err != nil || r.Text != "One." {
		t.Errorf("%+v, %+v", r, r.Err)
	}
}

// abortWithDaemon aborts a turn next to another session of the same process, and returns the pid of the daemon that it
// started.
func abortWithDaemon(t *testing.T, p *Provider, beside cli.Session, dir string) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	req := cli.Request{Dir: dir, Permission: cli.Bypass,
		Prompt: "[[tool " + strconv.Quote("setsid sh -c 'echo $$ >"+file+"; exec sleep 300' >/dev/null 2>&1 & sleep 300") + "]]"}
	s := open(t, p, req)
	if a, b := s.Info().PID, beside.Info().PID; a != b {
		t.Fatalf("the sessions are in the processes %d and %d", a, b)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	over := make(chan cli.Result, 1)
	go func() {
		r, _ := clitest.Play(ctx, s, req)
		over <- r
	}()
	pid := 0
	for deadline := time.Now().Add(time.Minute); pid == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(file) // not there yet
		pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
	}
	if !clitest.Alive(pid) {
		t.Fatalf("the daemon %d does not run", pid)
	}
	cancel(cli.ErrAborted)
	if r := <-over; !r.Aborted {
		t.Errorf("%+v, %+v", r, r.Err)
	}
	return pid
}
