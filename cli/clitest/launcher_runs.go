package clitest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
)

func playLeft(s *launcherStage) {
	p := s.start(s.agent(`while read line; do echo "got $line"; done; echo bye`))
	s.write(p, "one\n")
	s.line(p)
	if runs := s.left(); len(runs) > 0 {
		s.Errorf("its own runs are left: %+v", runs)
	}
	must(s, p.Begin(s.Context(), cli.Mark{Turn: "t1", Output: 8, Note: "n"}))
	s.write(p, "two\n")
	s.next()
	s.eventually("the second line", func() bool { return s.onlyLeft().OutputEnd == 16 })
	want := cli.LeftRun{
		Run: p.Run(), PID: p.PID(), OutputEnd: 16, Input: cli.LeftInput{End: 8}, Alive: true,
		Purpose: cli.Purpose{Agent: "fake", Mode: cli.Live, Conversation: "a", Setting: "s1"},
	}
	left := s.onlyLeft()
	// The mark is at offset 8. The launcher may delete output before the mark, so the output may begin at any byte up
	// to 8.
	if want.OutputBegin = left.OutputBegin; want.OutputBegin > 8 {
		s.Errorf("its output begins at %d", left.OutputBegin)
	}
	if diff := cmp.Diff(want, left); diff != "" {
		s.Error(diff)
	}
	q, err := s.launcher.Attach(s.Context(), want, 8)
	if err != nil {
		s.Fatal(err)
	}
	if got := s.line(q); got != "got two" {
		s.Errorf("from the mark on it said %q", got)
	}
	if at := q.When(12); time.Since(at) > time.Minute || q.PID() != p.PID() {
		s.Errorf("pid %d, it was said at %s", q.PID(), at)
	}
	s.write(q, "three\n")
	must(s, q.Stdin().Close())
	if rest := s.rest(q); rest != "got three\nbye\n" {
		s.Errorf("then it said %q", rest)
	}
	s.stop(q, 0)
}

func playLeftEnded(s *launcherStage) {
	cmd := s.agent(`read go; echo last words; echo why >&2; exit 5`)
	cmd.Turn = "t1"
	p := s.start(cmd)
	s.write(p, "go\n")
	p.Detach()
	s.next()
	s.eventually("its end", func() bool { return !s.onlyLeft().Alive })
	run := s.onlyLeft()
	if run.OutputEnd != 11 {
		s.Errorf("%+v", run)
	}
	q, err := s.launcher.Attach(s.Context(), run, 5)
	if err != nil {
		s.Fatal(err)
	}
	out := s.rest(q)
	<-q.Done()
	if out != "words\n" || q.Exit().Code != 5 || q.StderrTail() != "why\n" {
		s.Errorf("%q, %+v, %q", out, q.Exit(), q.StderrTail())
	}
	s.stop(q, 0)
}

func playDiscard(s *launcherStage) {
	p := s.start(s.agent(`setsid sleep 60 & echo ready; wait`))
	s.line(p)
	s.next()
	must(s, s.launcher.Discard(s.Context(), p.Run()))
	if alive := s.alive(p.Run()); len(alive) > 0 || len(s.left()) > 0 {
		s.Errorf("%v are alive, %+v is left", alive, s.left())
	}
}

func playProbe(s *launcherStage) {
	p := s.start(s.sh(`echo ready; exec sleep 60`))
	s.line(p)
	s.next()
	if runs := s.left(); len(runs) > 0 {
		s.Errorf("a probe is left: %+v", runs)
	}
	if alive := s.alive(p.Run()); len(alive) > 0 {
		s.Errorf("%v are still there", alive)
	}
}

func playSettled(s *launcherStage) {
	var forgotten cli.RunID
	for _, settled := range []bool{false, true} {
		p := s.start(s.agent(`exec sleep 60`))
		turn := cli.TurnID(fmt.Sprintf("settled %v", settled))
		marks := []cli.TurnID{cli.BackgroundMark, turn} // the mark of turn replaces BackgroundMark
		if settled {
			marks = append(marks, cli.BackgroundMark) // without a Note, this mark means: no background work
		}
		for _, m := range marks {
			must(s, p.Begin(s.Context(), cli.Mark{Turn: m}))
		}
		s.stop(p, 0)
		s.rest(p)
		if settled {
			s.launcher.Settled(turn)
			forgotten = p.Run()
		}
	}
	s.eventually("the settled one is forgotten", func() bool {
		q, err := s.launcher.Attach(s.Context(), cli.LeftRun{Run: forgotten}, 0)
		if err == nil {
			q.Detach()
		}
		return errors.Is(err, fs.ErrNotExist)
	})
	s.next()
	if run := s.onlyLeft(); run.Run == forgotten {
		s.Errorf("left is %+v", run)
	}
}

func playMany(s *launcherStage) {
	const many = 6
	ps := make([]cli.Process, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			p, err := s.launcher.Start(s.Context(), s.sh(fmt.Sprintf(`read x; echo %d $x; exec sleep 60`, i)))
			if err != nil {
				s.Error(err)
				return
			}
			ps[i] = p
			if _, err := io.WriteString(p.Stdin(), "go\n"); err != nil {
				s.Error(err)
			}
		})
	}
	all.Wait()
	for i, p := range ps {
		if p == nil {
			continue
		}
		s.runs = append(s.runs, p.Run())
		if got := s.line(p); got != fmt.Sprintf("%d go", i) {
			s.Errorf("process %d says %q", i, got)
		}
		all.Go(func() { s.stop(p, time.Second) })
	}
	all.Wait()
}
