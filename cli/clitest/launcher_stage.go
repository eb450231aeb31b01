package clitest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/proctree"
	"ductor/internal/runner"
)

// launcherStage contains the launcher and the runs of one test case of LauncherConformance.
type launcherStage struct {
	*testing.T
	h        LauncherHarness
	launcher ClosingLauncher
	runs     []cli.RunID
}

// clear ends all runs of the case, and fails the test if a process remains.
func (s *launcherStage) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), hostPatience)
	defer cancel()
	if s.launcher == nil {
		return
	}
	if err := s.launcher.Close(); err != nil {
		s.Error(err)
	}
	last := s.h.Open(s.T)
	left, err := last.Left(ctx)
	for _, run := range left {
		err = errors.Join(err, last.Discard(ctx, run.Run))
	}
	if err = errors.Join(err, last.Close()); err != nil {
		s.Error(err)
	}
	awaitNone(s.T, s.runs)
}

// next simulates a restart of ductor: it closes the launcher and opens another.
func (s *launcherStage) next() {
	s.Helper()
	must(s, s.launcher.Close())
	s.launcher = s.h.Open(s.T)
}

func (s *launcherStage) sh(script string) cli.Command {
	return cli.Command{Path: "sh", Args: []string{"-c", script}, Dir: s.h.Dir, Env: s.h.Env}
}

// agent returns a command like that of an agent: it has a Purpose, so the next process of ductor can adopt its run.
func (s *launcherStage) agent(script string) cli.Command {
	cmd := s.sh(script)
	cmd.For = cli.Purpose{Agent: "fake", Mode: cli.Live, Conversation: "a", Setting: "s1"}
	return cmd
}

func (s *launcherStage) start(cmd cli.Command) cli.Process {
	s.Helper()
	p, err := s.launcher.Start(s.Context(), cmd)
	if err != nil {
		s.Fatal(err)
	}
	s.runs = append(s.runs, p.Run())
	return p
}

func (s *launcherStage) stop(p cli.Process, grace time.Duration) {
	s.Helper()
	must(s, p.Stop(s.Context(), grace))
	if alive := s.alive(p.Run()); len(alive) > 0 {
		s.Errorf("after Stop these are alive: %v", alive)
	}
}

// alive returns the processes of a run. It finds those in containers, too.
func (s *launcherStage) alive(run cli.RunID) []proctree.ID {
	s.Helper()
	ids, err := proctree.Marked(runner.Mark(string(run)))
	if err != nil {
		s.Fatal(err)
	}
	return ids
}

func (s *launcherStage) write(p cli.Process, text string) {
	s.Helper()
	if _, err := io.WriteString(p.Stdin(), text); err != nil {
		s.Fatal(err)
	}
}

// line reads one line, and no byte after it.
func (s *launcherStage) line(p cli.Process) string {
	s.Helper()
	line, err := bufio.NewReaderSize(bytewise{p.Stdout()}, 16).ReadString('\n')
	if err != nil {
		s.Fatalf("after %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

type bytewise struct{ r io.Reader }

func (b bytewise) Read(p []byte) (int, error) { return b.r.Read(p[:min(len(p), 1)]) }

func (s *launcherStage) rest(p cli.Process) string {
	s.Helper()
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		s.Fatalf("after %d bytes: %v", len(out), err)
	}
	return string(out)
}

func (s *launcherStage) left() []cli.LeftRun {
	s.Helper()
	runs, err := s.launcher.Left(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return runs
}

func (s *launcherStage) onlyLeft() cli.LeftRun {
	s.Helper()
	runs := s.left()
	if len(runs) != 1 {
		s.Fatalf("%d runs are left, want one: %+v", len(runs), runs)
	}
	return runs[0]
}

func (s *launcherStage) eventually(what string, ok func() bool) {
	s.Helper()
	for until := time.Now().Add(hostPatience); !ok(); time.Sleep(look) {
		if time.Now().After(until) {
			s.Fatalf("%s: not in %s", what, hostPatience)
		}
	}
}
