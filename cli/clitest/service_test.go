package clitest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/service"
)

// newService returns a Service over the scripted agent in real processes.
func newService(t *testing.T, maxLive int) *service.Service {
	t.Helper()
	opts := service.Options{Providers: []cli.Provider{scriptedPlain(t)}}
	opts.MaxLive = maxLive
	s, err := service.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeInTime(t, s) })
	return s
}

func closeInTime(t *testing.T, s *service.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestServiceOverProcesses tests warm turns, an abort that leaves no process, and a turn after that.
func TestServiceOverProcesses(t *testing.T) {
	stage := newStage(t, Harness{Mode: cli.Live, New: func(t *testing.T) (cli.Provider, cli.Request) {
		return &plainProvider{}, cli.Request{Permission: cli.Bypass, Dir: t.TempDir(), Conversation: "a"}
	}})
	s := newService(t, 0)
	one := s.Run(t.Context(), plain, stage.ask("the lighthouse", stage.script.Say("One.")), func(cli.Event) {})
	if one.Err != nil || one.Text != "One." {
		t.Fatalf("%+v", one)
	}
	pid := s.Live(t.Context()).Sessions[0].PID

	req := stage.ask(stage.script.Run("setsid sleep 300 & sleep 300"))
	req.Resume = one.AgentSessionID
	started := make(chan struct{})
	go func() {
		<-started
		s.Abort("a")
	}()
	var told time.Time
	aborted := s.Run(t.Context(), plain, req, func(ev cli.Event) {
		switch ev.(type) {
		case cli.ToolStarted:
			if now := s.Live(t.Context()).Sessions[0]; now.PID != pid || !now.Busy {
				t.Errorf("the second turn runs in %+v, the first ran in %d", now, pid)
			}
			close(started)
		case cli.Result:
			told = time.Now()
		}
	})
	t.Logf("all was dead %s after the Result", time.Since(told).Round(time.Millisecond/10))
	if !aborted.Aborted {
		t.Errorf("%+v", aborted)
	}
	if left := stage.processes(); len(left) > 0 {
		t.Errorf("after the abort these are left: %v", left)
	}
	req = stage.ask(stage.script.Recall)
	req.Resume = one.AgentSessionID
	if r := s.Run(t.Context(), plain, req, func(cli.Event) {}); !strings.Contains(r.Text, "lighthouse") {
		t.Errorf("the session went on as %+v", r)
	}
}

// TestServiceFallsBackOverProcesses tests an agent that dies before its first output: the turn is repeated one-shot.
func TestServiceFallsBackOverProcesses(t *testing.T) {
	s := newService(t, 0)
	req := cli.Request{Dir: t.TempDir(), Prompt: Script{}.withDefaults().Crash}
	r := s.Run(t.Context(), plain, req, func(cli.Event) {})
	if !r.Fallback || r.Err == nil || r.Err.Kind != cli.Crashed || r.Err.Code != 3 {
		t.Errorf("%+v, %+v", r, r.Err)
	}
}

// TestServiceManyConversations runs twenty conversations at once, each with its own agent.
func TestServiceManyConversations(t *testing.T) {
	s := newService(t, 5)
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			req := cli.Request{Dir: dir, Conversation: cli.Conversation(fmt.Sprint(i)),
				Prompt: fmt.Sprintf(`[[text "answer %d"]]`, i)}
			if r := s.Run(t.Context(), plain, req, func(cli.Event) {}); r.Text != fmt.Sprint("answer ", i) {
				t.Errorf("%d: %+v, %+v", i, r, r.Err)
			}
		})
	}
	all.Wait()
	for deadline := time.Now().Add(time.Minute); len(s.Live(t.Context()).Sessions) > 5; time.Sleep(look) {
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions are kept", len(s.Live(t.Context()).Sessions))
		}
	}
}
