package copilot

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
)

// Processes of an aborted turn end with the turn, although they left the turn's group, and although the agent's process
// serves another conversation, which is resumed in another process.
func TestAnAbortLeavesNothingOfATurnInASharedProcess(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		other := cli.Request{Dir: dir, Permission: cli.Bypass, Conversation: "other", Prompt: `about the lighthouse [[text "One."]]`}
		beside := clitest.Open(t, p, cli.Live, other)
		one, _ := clitest.Play(t.Context(), beside, other)
		pid := abortWithDaemon(t, p, beside, dir)
		if clitest.Alive(pid) || beside.Info().Alive {
			t.Errorf("the daemon %d lives: %v; its process takes turns: %v",
				pid, clitest.Alive(pid), beside.Info().Alive)
		}
		other.Resume, other.Prompt = one.AgentSessionID, "[[history]]"
		if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, other), other); !strings.Contains(r.Text, "lighthouse") {
			t.Errorf("%+v, %+v", r, r.Err)
		}
	})
}

// A turn of another conversation is not disturbed: the process ends after it.
func TestAnAbortLeavesTheTurnsOfOthersAlone(t *testing.T) {
	p, dir := scripted(t)
	other := cli.Request{Dir: dir, Permission: cli.Bypass, Conversation: "other", Prompt: `[[tool cmd="until [ -e go ]; do sleep 0.01; done"]] [[text "Done."]]`}
	beside := clitest.Open(t, p, cli.Live, other)
	turn := begin(t.Context(), beside, other)
	await[cli.ToolStarted](t, turn)
	pid := abortWithDaemon(t, p, beside, dir)
	if !clitest.Alive(pid) {
		t.Error("the process was ended under the other turn, or the daemon is not what it should be")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-turn.over
	if turn.end.Err != nil || !strings.HasSuffix(turn.end.Text, "Done.") {
		t.Errorf("%+v, %+v", turn.end, turn.end.Err)
	}
	if clitest.Alive(pid) {
		t.Errorf("the daemon %d lives", pid)
	}
}

// abortWithDaemon aborts a turn next to another session of the same process, and returns the pid of the daemon that it
// started.
func abortWithDaemon(t *testing.T, p *Provider, beside cli.Session, dir string) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	wish := cli.Request{Dir: dir, Permission: cli.Bypass, Conversation: "aborted",
		Prompt: "[[tool " + strconv.Quote("setsid sh -c 'echo $$ >"+file+"; exec sleep 300' >/dev/null 2>&1 & sleep 300") + "]]"}
	s := clitest.Open(t, p, cli.Live, wish)
	if a, b := s.Info().PID, beside.Info().PID; a != b {
		t.Fatalf("the sessions are in the processes %d and %d", a, b)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	turn := begin(ctx, s, wish)
	pid := 0
	for deadline := time.Now().Add(time.Minute); pid == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(file) // not there yet
		pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
	}
	if !clitest.Alive(pid) {
		t.Fatalf("the daemon %d does not run", pid)
	}
	cancel(cli.ErrAborted)
	<-turn.over
	if !turn.end.Aborted {
		t.Errorf("%+v, %+v", turn.end, turn.end.Err)
	}
	return pid
}
