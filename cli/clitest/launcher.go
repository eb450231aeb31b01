package clitest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/runner"
)

// ClosingLauncher is a launcher that must be closed.
type ClosingLauncher interface {
	cli.Launcher
	Close() error
}

// LauncherHarness describes an environment for LauncherConformance. The environment must have sh, cat, sleep, head, wc
// and setsid.
type LauncherHarness struct {
	// Open returns a launcher for the environment, as ductor creates one when it starts. The suite closes a launcher
	// before it opens the next.
	Open func(t *testing.T) ClosingLauncher
	Dir  string   // an existing directory
	Env  []string // an environment in which sh finds programs
}

// LauncherConformance tests that a launcher fulfills the contracts of cli.Launcher and cli.Process.
func LauncherConformance(t *testing.T, h LauncherHarness) {
	for _, c := range []struct {
		name string
		play func(*launcherStage)
	}{
		{"a program talks over its pipes", playTalk},
		{"how a program ended", playEnds},
		{"an interrupt reaches the group", playInterrupt},
		{"what is not there", playNotThere},
		{"the environment", playEnvironment},
		{"much input and output", playMuch},
		{"Stop ends a deep and deaf tree", playStopTree},
		{"Stop after the program exited", playStopLate},
		{"a cancelled Stop has no grace", playStopNow},
		{"a run is left and taken up", playLeft},
		{"a run that ended is left", playLeftEnded},
		{"a run is discarded", playDiscard},
		{"a probe is nobody's", playProbe},
		{"a stopped run is kept until it is settled", playSettled},
		{"many at once", playMany},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &launcherStage{T: t, h: h}
			t.Cleanup(s.clear)
			s.launcher = h.Open(t)
			c.play(s)
		})
	}
}

func playTalk(s *launcherStage) {
	p := s.start(s.sh(`read line; echo "got $line"; echo oops >&2; exit 3`))
	s.write(p, "hello\n")
	if out := s.rest(p); out != "got hello\n" {
		s.Errorf("stdout %q", out)
	}
	<-p.Done()
	if got := p.Exit(); got != (cli.ExitStatus{Code: 3}) {
		s.Errorf("exit %+v", got)
	}
	if got := p.StderrTail(); got != "oops\n" {
		s.Errorf("stderr %q", got)
	}
	if _, err := io.WriteString(p.Stdin(), "again\n"); err == nil {
		s.Error("a write to a dead program did not fail")
	}
	if p.PID() <= 0 || p.Run() == "" {
		s.Errorf("process %d of run %q", p.PID(), p.Run())
	}
	s.stop(p, 0)
}

func playEnds(s *launcherStage) {
	for _, c := range []struct {
		script string
		grace  time.Duration // passed to Stop; if zero, the case does not call Stop
		want   cli.ExitStatus
	}{
		{"exit 3", 0, cli.ExitStatus{Code: 3}},
		{"kill -9 $$", 0, cli.ExitStatus{Code: -9, Signal: true}},
		{"echo ready; exec sleep 60", time.Minute, cli.ExitStatus{Code: -15, Signal: true, By: cli.EndedByStop}},
		{"trap '' TERM; echo ready; while :; do sleep 1; done", 50 * time.Millisecond,
			cli.ExitStatus{Code: -9, Signal: true, By: cli.EndedByStop}},
	} {
		p := s.start(s.sh(c.script))
		if c.grace > 0 {
			s.line(p)
			s.stop(p, c.grace)
		}
		<-p.Done()
		if got := p.Exit(); got != c.want {
			s.Errorf("%s: exit %+v, want %+v", c.script, got, c.want)
		}
		s.stop(p, 0)
	}
}

func playInterrupt(s *launcherStage) {
	p := s.start(s.sh(`trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.01; done`))
	s.line(p)
	must(s, p.Interrupt())
	<-p.Done()
	if got := p.Exit().Code; got != 7 {
		s.Errorf("exit code %d", got)
	}
	s.stop(p, 0)
}

func playNotThere(s *launcherStage) {
	for name, c := range map[string]struct {
		cmd      cli.Command
		notThere bool
	}{
		"no such name":      {cli.Command{Path: "no-such-program-anywhere", Env: s.h.Env}, true},
		"no such file":      {cli.Command{Path: "/no/such/file"}, true},
		"no such directory": {cli.Command{Path: "sh", Dir: "/no/such/dir", Env: s.h.Env}, false},
	} {
		_, err := s.launcher.Start(s.Context(), c.cmd)
		if err == nil || errors.Is(err, fs.ErrNotExist) != c.notThere {
			s.Errorf("%s: %v", name, err)
		}
	}
	if path, err := s.launcher.LookPath("sh"); err != nil || !strings.HasSuffix(path, "/sh") {
		s.Errorf("sh is at %q, %v", path, err)
	}
	if _, err := s.launcher.LookPath("no-such-program-anywhere"); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("LookPath gives %v", err)
	}
	if _, err := s.launcher.Attach(s.Context(), cli.LeftRun{Run: "no-such-run"}, 0); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("Attach gives %v", err)
	}
	cancelled, cancel := context.WithCancelCause(s.Context())
	cancel(cli.ErrAborted)
	if _, err := s.launcher.Start(cancelled, s.sh("exit 0")); err == nil {
		s.Error("a start after the cancel succeeded")
	}
}

func playEnvironment(s *launcherStage) {
	cmd := s.sh(`echo "$DUCTOR_CHAT_ID|$A|$` + runner.RunVar + `"; pwd`)
	cmd.Env = append(append([]string(nil), cmd.Env...), "A=x=y", runner.RunVar+"=outer", cli.ChatIDVar+"=42")
	p := s.start(cmd)
	if got, want := s.rest(p), "42|x=y|"+string(p.Run())+"\n"+s.h.Dir+"\n"; got != want {
		s.Errorf("it sees %q, want %q", got, want)
	}
	s.stop(p, 0)
}

func playMuch(s *launcherStage) {
	const size = 3 << 20
	p := s.start(s.sh(`cat; echo done`))
	text := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	var sent sync.WaitGroup
	sent.Go(func() {
		_, err := p.Stdin().Write(text)
		if err = errors.Join(err, p.Stdin().Close()); err != nil {
			s.Error(err)
		}
	})
	out := s.rest(p)
	sent.Wait()
	if !strings.HasPrefix(out, string(text)) || !strings.HasSuffix(out, "done\n") || len(out) != size+5 {
		s.Errorf("%d bytes came back of %d", len(out), size)
	}
	s.stop(p, 0)
}

// deepTree starts three nested shells, each in its own session (setsid). All ignore SIGTERM and SIGHUP.
const deepTree = `trap '' TERM HUP
setsid sh -c "trap '' TERM HUP; setsid sh -c \"trap '' TERM HUP; echo deep; while :; do sleep 1; done\" & while :; do sleep 1; done" &
while :; do sleep 1; done`

func playStopTree(s *launcherStage) {
	p := s.start(s.sh(deepTree))
	s.line(p)
	s.eventually("the whole tree", func() bool { return len(s.alive(p.Run())) >= 5 })
	began := time.Now()
	s.stop(p, 100*time.Millisecond)
	s.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
}

func playStopLate(s *launcherStage) {
	p := s.start(s.sh(`setsid sleep 60 & exit 0`))
	<-p.Done()
	// Retry, because /proc shows no environment of a process for a moment during an exec.
	s.eventually("something that outlives the program", func() bool { return len(s.alive(p.Run())) > 0 })
	for range 3 {
		s.stop(p, time.Second)
	}
}

func playStopNow(s *launcherStage) {
	p := s.start(s.sh(`trap '' TERM; echo ready; while :; do sleep 1; done`))
	s.line(p)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	must(s, p.Stop(ctx, time.Hour))
	if got := p.Exit(); !got.Signal {
		s.Errorf("exit %+v", got)
	}
}
