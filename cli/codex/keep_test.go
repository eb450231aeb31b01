package codex

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// next is the next turn of a conversation.
func next(req cli.Request, r cli.Result, turn cli.TurnID, prompt string) cli.Request {
	req.Resume, req.Turn, req.Prompt = r.AgentSessionID, turn, "[[start]] "+prompt
	return req
}

func keep(t *testing.T, p *Provider, left cli.LeftRun) cli.Kept {
	t.Helper()
	k, err := p.Keep(t.Context(), left)
	if err != nil {
		t.Fatalf("keep: %v", err)
	}
	return k
}

// A process in which nothing runs is kept over a restart: the threads go on in it, what they left running is ended,
// and an abort reaches all that they start from then on.
func TestAProcessThatRestsIsKept(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		p, leave := lives(t, p)
		a, b := inDir(dir, "a", `the windmill [[tool cmd="setsid sh -c 'touch up; sleep 614' >/dev/null 2>&1 & until [ -e up ]; do sleep 0.01; done"]][[text one]]`), inDir(dir, "b", `the harbour [[text two]]`)
		sa, sb := openLive(t, p, a), openLive(t, p, b)
		ra, _ := clitest.Play(t.Context(), sa, a)
		rb, _ := clitest.Play(t.Context(), sb, b)
		for until := time.Now().Add(20 * time.Second); len(running61x(t)) == 0 && time.Now().Before(until); time.Sleep(time.Millisecond) {
		}
		if left := running61x(t); ra.Text != "one" || rb.Text != "two" || len(left) != 1 {
			t.Fatalf("%+v and %+v, which left %q", ra, rb, left)
		}
		p, left := leave(sa, sb)
		if _, rests := left.Rested(); !rests {
			t.Fatalf("left %+v", left)
		}
		k := keep(t, p, left)
		if k.PID != left.PID || !k.Alive() || p.Shares(a) != left.PID {
			t.Errorf("kept %d, shared %d, left %d", k.PID, p.Shares(a), left.PID)
		}
		if left := running61x(t); len(left) > 0 {
			t.Errorf("%q runs on, and no process knows of it", left)
		}
		b = next(b, rb, "turn-b2", `[[history]]`)
		sb = openLive(t, p, b)
		if r, _ := clitest.Play(t.Context(), sb, b); !strings.Contains(r.Text, "harbour") || strings.Contains(r.Text, "windmill") {
			t.Errorf("b knows %q, %v", r.Text, r.Err)
		}
		mark := filepath.Join(dir, "alive")
		a = next(a, ra, "turn-a2", `[[tool cmd="setsid sh -c 'setsid sleep 611 & touch `+mark+`; sleep 612' & sleep 613"]]`)
		sa = openLive(t, p, a)
		turn := begin(t, sa, a)
		awaitPath(t, mark)
		turn.cancel(cli.ErrAborted)
		if r := turn.end(); !r.Aborted {
			t.Errorf("aborted as %+v", r)
		}
		clitest.Close(t, sa)
		if left := running61x(t); len(left) > 0 {
			t.Errorf("the abort left %q", left)
		}
		if sa.Info().PID != 0 && sa.Info().PID != left.PID || sb.Info().PID != left.PID {
			t.Errorf("the turns ran in %+v and %+v, not in %d", sa.Info(), sb.Info(), left.PID)
		}
		if err := k.Close(t.Context()); err != nil || !sb.Info().Alive {
			t.Errorf("no keeper has it, but b is in it: %+v, %v", sb.Info(), err)
		}
		clitest.Close(t, sb)
		if err := syscall.Kill(left.PID, 0); err == nil {
			t.Error("the process outlived its last thread")
		}
	})
}

// A process rests when its last turn has ended, and not before.
func TestWhenAProcessRests(t *testing.T) {
	const hold = `[[tool cmd="touch a; until [ -e go ]; do sleep 0.01; done"]][[text done]]`
	for name, c := range map[string]struct {
		play  func(t *testing.T, p *Provider, dir string) []cli.Session
		rests bool
	}{
		"no turn ever": {func(t *testing.T, p *Provider, dir string) []cli.Session {
			return []cli.Session{openLive(t, p, inDir(dir, "a", ""))}
		}, false},
		"a turn that failed": {func(t *testing.T, p *Provider, dir string) []cli.Session {
			req := inDir(dir, "a", "[[error 400]]")
			s := openLive(t, p, req)
			clitest.Play(t.Context(), s, req)
			return []cli.Session{s}
		}, true},
		"one ends while another runs": {func(t *testing.T, p *Provider, dir string) []cli.Session {
			a, b := inDir(dir, "a", hold), inDir(dir, "b", "[[text done]]")
			sa, sb := openLive(t, p, a), openLive(t, p, b)
			turn := begin(t, sa, a)
			awaitPath(t, filepath.Join(dir, "a"))
			clitest.Play(t.Context(), sb, b)
			turn.detach()
			return []cli.Session{sa, sb}
		}, false},
		"one is aborted and not cleaned up after": {func(t *testing.T, p *Provider, dir string) []cli.Session {
			a, b := inDir(dir, "a", hold), inDir(dir, "b", "[[text done]]")
			sa, sb := openLive(t, p, a), openLive(t, p, b)
			turn := begin(t, sa, a)
			awaitPath(t, filepath.Join(dir, "a"))
			turn.cancel(cli.ErrAborted)
			turn.end()
			clitest.Play(t.Context(), sb, b)
			return []cli.Session{sa, sb}
		}, false},
		"one is aborted and cleaned up after": {func(t *testing.T, p *Provider, dir string) []cli.Session {
			a, b := inDir(dir, "a", hold), inDir(dir, "b", "[[text done]]")
			sa, sb := openLive(t, p, a), openLive(t, p, b)
			turn := begin(t, sa, a)
			awaitPath(t, filepath.Join(dir, "a"))
			clitest.Play(t.Context(), sb, b)
			turn.cancel(cli.ErrAborted)
			turn.end()
			clitest.Close(t, sa)
			return []cli.Session{sb}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, dir := scripted(t)
			p, leave := lives(t, p)
			p, left := leave(c.play(t, p, dir)...)
			if _, rests := left.Rested(); rests != c.rests {
				t.Errorf("left with the marks %+v", left.Marks)
			}
			if err := p.opts.Launcher.Discard(t.Context(), left.Run); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAProcessThatIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, p *Provider, dir string, left *cli.LeftRun)
		why    string
	}{
		"a turn has begun since": {func(_ *testing.T, _ *Provider, _ string, left *cli.LeftRun) {
			left.Marks = append(left.Marks, cli.Mark{Turn: "T"})
		}, "it is unknown what runs in it"},
		"no note": {func(_ *testing.T, _ *Provider, _ string, left *cli.LeftRun) {
			left.Marks[len(left.Marks)-1].Note = ""
		}, "it is unknown what runs in it"},
		"another version": {func(_ *testing.T, _ *Provider, _ string, left *cli.LeftRun) {
			left.Marks[len(left.Marks)-1].Note = `{"version":"0.1.0"}`
		}, "it is version 0.1.0, and"},
		"another one took its place": {func(t *testing.T, p *Provider, dir string, _ *cli.LeftRun) {
			openLive(t, p, inDir(dir, "b", ""))
		}, "another one took its place"},
		"it has ended": {func(t *testing.T, _ *Provider, _ string, left *cli.LeftRun) {
			if err := syscall.Kill(left.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, dir := scripted(t)
			p, leave := lives(t, p)
			req := inDir(dir, "a", "[[text done]]")
			s := openLive(t, p, req)
			r, _ := clitest.Play(t.Context(), s, req)
			p, left := leave(s)
			left.Marks = slices.Clone(left.Marks)
			c.change(t, p, dir, &left)
			k, err := p.Keep(t.Context(), left)
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Fatalf("kept %d, %v", k.PID, err)
			}
			if err := p.opts.Launcher.Discard(t.Context(), left.Run); err != nil {
				t.Error(err)
			}
			req = next(req, r, "turn-2", "[[text again]]")
			s = openLive(t, p, req)
			if r, _ := clitest.Play(t.Context(), s, req); r.Text != "again" || s.Info().PID == left.PID {
				t.Errorf("after it: %+v, %v", r, r.Err)
			}
		})
	}
}

// A thread that works in the background of a process is not disturbed by a new owner of it: the process is not kept.
func TestAProcessWithAThreadAtWorkIsNotKept(t *testing.T) {
	p, dir := scripted(t)
	p, leave := lives(t, p)
	req := inDir(dir, "a", "[[text one]] [[hang]]")
	s := openLive(t, p, req)
	turn := begin(t, s, req)
	await[cli.TextDelta](turn)
	turn.detach()
	p, left := leave(s)
	left.Marks = []cli.Mark{{Turn: cli.RestMark, Note: `{"version":"0.169.0"}`}}
	if _, err := p.Keep(t.Context(), left); err == nil || !strings.Contains(err.Error(), "is at work") {
		t.Errorf("kept: %v", err)
	}
	if err := p.opts.Launcher.Discard(t.Context(), left.Run); err != nil {
		t.Error(err)
	}
}
