package clitest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/internal/supervisor"
)

// ClosingLauncher is a launcher that is closed with its ductor.
type ClosingLauncher interface {
	cli.Launcher
	Close() error
}

// LauncherHarness is a place as LauncherConformance drives it. It must have sh, cat, sleep, head, wc and setsid.
type LauncherHarness struct {
	// Open gives the launcher of a ductor. Each call is another ductor over the same place; the one before is
	// closed by then.
	Open func(t *testing.T) ClosingLauncher
	Dir  string   // a directory that is there
	Env  []string // what sh needs to find programs
}

// LauncherConformance holds a launcher to the contract of cli.Launcher and cli.Process.
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
		{"what a place knows", playKnows},
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

// launcherStage is what one case plays on.
type launcherStage struct {
	*testing.T
	h        LauncherHarness
	launcher ClosingLauncher
	runs     []cli.RunID
}

// clear ends what the case left, and finds no process of it.
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
	for _, run := range s.runs {
		awaitNone(s.T, string(run))
	}
}

// next is the launcher of the ductor after this one.
func (s *launcherStage) next() {
	s.Helper()
	if err := s.launcher.Close(); err != nil {
		s.Fatal(err)
	}
	s.launcher = s.h.Open(s.T)
}

func (s *launcherStage) sh(script string) cli.Command {
	return cli.Command{Path: "sh", Args: []string{"-c", script}, Dir: s.h.Dir, Env: s.h.Env}
}

// agent is a command of some worth to a later ductor.
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
	if err := p.Stop(s.Context(), grace); err != nil {
		s.Fatal(err)
	}
	if alive := s.alive(p.Run()); len(alive) > 0 {
		s.Errorf("after Stop these are alive: %v", alive)
	}
}

// alive lists the processes of a run that this machine has, in whatever container.
func (s *launcherStage) alive(run cli.RunID) []supervisor.ProcID {
	s.Helper()
	ids, err := supervisor.Marked(string(run))
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

// line reads one line and not a byte more.
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
		stop   bool
		want   cli.ExitStatus
	}{
		{"exit 3", false, cli.ExitStatus{Code: 3}},
		{"kill -9 $$", false, cli.ExitStatus{Code: -9, Signal: true}},
		{"echo ready; exec sleep 60", true, cli.ExitStatus{Code: -15, Signal: true, By: cli.EndedByStop}},
		{"trap '' TERM; echo ready; while :; do sleep 1; done", true, cli.ExitStatus{Code: -9, Signal: true, By: cli.EndedByStop}},
	} {
		p := s.start(s.sh(c.script))
		if c.stop {
			s.line(p)
			s.stop(p, 50*time.Millisecond)
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
	if err := p.Interrupt(); err != nil {
		s.Fatal(err)
	}
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
	if _, err := s.launcher.Attach(s.Context(), "no-such-run", 0); !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("Attach gives %v", err)
	}
	cancelled, cancel := context.WithCancelCause(s.Context())
	cancel(cli.ErrAborted)
	if _, err := s.launcher.Start(cancelled, s.sh("exit 0")); err == nil {
		s.Error("a start after the cancel succeeded")
	}
}

func playEnvironment(s *launcherStage) {
	cmd := s.sh(`echo "$DUCTOR_CHAT_ID|$A|$` + supervisor.RunVar + `"; pwd`)
	cmd.Env = append(append([]string(nil), cmd.Env...), "A=x=y", supervisor.RunVar+"=outer", cli.ChatIDVar+"=42")
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

// deepTree is three sessions below each other, deaf every one.
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
	if len(s.alive(p.Run())) == 0 {
		s.Fatal("nothing outlived the program: the case proves nothing")
	}
	for range 3 {
		s.stop(p, time.Second)
	}
}

func playStopNow(s *launcherStage) {
	p := s.start(s.sh(`trap '' TERM; echo ready; while :; do sleep 1; done`))
	s.line(p)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if err := p.Stop(ctx, time.Hour); err != nil {
		s.Fatal(err)
	}
	if got := p.Exit(); !got.Signal {
		s.Errorf("exit %+v", got)
	}
}

func playLeft(s *launcherStage) {
	p := s.start(s.agent(`while read line; do echo "got $line"; done; echo bye`))
	s.write(p, "one\n")
	s.line(p)
	if runs := s.left(); len(runs) > 0 {
		s.Errorf("its own runs are left: %+v", runs)
	}
	if err := p.Begin(s.Context(), cli.Mark{Turn: "t1", Output: 8, Note: "n"}); err != nil {
		s.Fatal(err)
	}
	s.write(p, "two\n")
	s.next()
	s.eventually("the second line", func() bool { return s.onlyLeft().OutputEnd == 16 })
	want := cli.LeftRun{
		Run: p.Run(), PID: p.PID(), OutputEnd: 16, InputEnd: 8, Alive: true,
		Purpose: cli.Purpose{Agent: "fake", Mode: cli.Live, Conversation: "a", Setting: "s1"},
		Marks:   []cli.Mark{{Turn: "t1", Output: 8, Input: 4, Note: "n"}},
	}
	if diff := cmp.Diff(want, s.onlyLeft()); diff != "" {
		s.Error(diff)
	}
	q, err := s.launcher.Attach(s.Context(), want.Run, 8)
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
	if err := q.Stdin().Close(); err != nil {
		s.Fatal(err)
	}
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
	if diff := cmp.Diff([]cli.Mark{{Turn: "t1"}}, run.Marks); diff != "" || run.OutputEnd != 11 {
		s.Errorf("%+v: %s", run, diff)
	}
	q, err := s.launcher.Attach(s.Context(), run.Run, 5)
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
	if err := s.launcher.Discard(s.Context(), p.Run()); err != nil {
		s.Fatal(err)
	}
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
		if err := p.Begin(s.Context(), cli.Mark{Turn: turn}); err != nil {
			s.Fatal(err)
		}
		s.stop(p, 0)
		s.rest(p)
		if settled {
			s.launcher.Settled(turn)
			forgotten = p.Run()
		}
	}
	s.eventually("the settled one is forgotten", func() bool {
		q, err := s.launcher.Attach(s.Context(), forgotten, 0)
		if err == nil {
			q.Detach()
		}
		return errors.Is(err, fs.ErrNotExist)
	})
	s.next()
	if run := s.onlyLeft(); len(run.Marks) != 1 || run.Marks[0].Turn != "settled false" {
		s.Errorf("left is %+v", run)
	}
}

func playKnows(s *launcherStage) {
	p := s.start(s.sh("exit 0"))
	<-p.Done()
	s.stop(p, 0)
	s.launcher.Knows(time.Now()) // from now on it has been asked
	after := time.Now()
	s.next()
	if !s.launcher.Knows(after) || s.launcher.Knows(time.Unix(1, 0)) {
		s.Error("it does not know what it has seen, or knows what was before it")
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
