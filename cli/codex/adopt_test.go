package codex

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
)

// lives returns two ductors over the same runs, one after the other.
func lives(t *testing.T, p *Provider) (now *Provider, leave func(...cli.Session) (*Provider, cli.LeftRun)) {
	t.Helper()
	dir := t.TempDir()
	h := clitest.OpenHost(t, host.Options{Dir: dir})
	now = over(p, h).(*Provider)
	return now, func(sessions ...cli.Session) (*Provider, cli.LeftRun) {
		t.Helper()
		for _, s := range sessions {
			s.Detach()
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		next := clitest.OpenHost(t, host.Options{Dir: dir})
		left := clitest.Left(t, next, dir)
		if len(left) != 1 {
			t.Fatalf("left %+v", left)
		}
		h = next
		return over(p, next).(*Provider), left[0]
	}
}

func (r *running) detach() {
	r.t.Helper()
	r.cancel(cli.ErrDetached)
	if result := r.end(); !result.Detached {
		r.t.Fatalf("detached as %+v, %v", result, result.Err)
	}
}

func adopted(t *testing.T, p *Provider, left cli.LeftRun, req cli.Request) cli.Session {
	t.Helper()
	s, err := p.Adopt(t.Context(), left, req)
	if err != nil {
		t.Fatalf("adopt %s: %v", req.Turn, err)
	}
	t.Cleanup(func() { clitest.Close(t, s) })
	return s
}

func TestTwoConversationsOfOneProcessAreGoneOnWith(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		p, leave := lives(t, p)
		wait := func(name string) string {
			return `[[tool cmd="touch ` + name + `; until [ -e go-` + name + ` ]; do sleep 0.01; done"]][[text "done ` + name + `"]]`
		}
		a, b := inDir(dir, "a", wait("a")), inDir(dir, "b", wait("b"))
		sa, sb := openLive(t, p, a), openLive(t, p, b)
		ta, tb := begin(t, sa, a), begin(t, sb, b)
		for _, name := range []string{"a", "b"} {
			awaitPath(t, filepath.Join(dir, name))
		}
		ta.detach()
		tb.detach()
		next, left := leave(sa, sb)
		if len(left.Marks) != 2 || left.Conversation != "" {
			t.Fatalf("left %+v", left)
		}
		if err := os.WriteFile(filepath.Join(dir, "go-a"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		// One is resumed and closed before the other is resumed.
		sa = adopted(t, next, left, a)
		r := begin(t, sa, a).end()
		if r.Err != nil || !strings.HasSuffix(r.Text, "done a") {
			t.Errorf("a: %+v, %v", r, r.Err)
		}
		clitest.Close(t, sa)
		sb = adopted(t, next, left, b)
		tb = begin(t, sb, b)
		await[cli.CaughtUp](tb)
		if err := os.WriteFile(filepath.Join(dir, "go-b"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := tb.end(); r.Err != nil || !strings.HasSuffix(r.Text, "done b") || len(clitest.Of[cli.ToolStarted](tb.all)) != 1 {
			t.Errorf("b: %+v, %v", r, r.Err)
		}
		// A new conversation gets another process.
		if c := openLive(t, next, inDir(dir, "c", "")); c.Info().PID == sb.Info().PID {
			t.Errorf("%+v beside %+v", c.Info(), sb.Info())
		}
	})
}

func TestAnOpenApprovalIsAskedAgainAfterARestart(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		p, leave := lives(t, p)
		req := inDir(dir, "a", `[[tool cmd="touch first"]][[tool cmd="touch second"]][[text done]]`)
		req.Permission, req.Attended = cli.Ask, true
		s := openLive(t, p, req)
		turn := begin(t, s, req)
		first := await[cli.ApprovalAsked](turn)
		if err := s.(cli.Decider).Decide(t.Context(), first.ID, cli.Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		second := await[cli.ApprovalAsked](turn)
		turn.detach()
		next, left := leave(s)

		s = adopted(t, next, left, req)
		turn = begin(t, s, req)
		again := await[cli.ApprovalAsked](turn)
		if again.ID != second.ID || again.Title != "touch second" {
			t.Errorf("asked again as %+v, was %+v", again, second)
		}
		await[cli.CaughtUp](turn)
		decider := s.(cli.Decider)
		if err := decider.Decide(t.Context(), first.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("what was answered before is answered again: %v", err)
		}
		if err := decider.Decide(t.Context(), again.ID, cli.Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		if r := turn.end(); r.Err != nil || !strings.HasSuffix(r.Text, "done") {
			t.Errorf("%+v, %v", r, r.Err)
		}
		awaitPath(t, filepath.Join(dir, "second"))
	})
}

func TestLettingGoSparesTurnsThatNobodyAskedForYet(t *testing.T) {
	p, dir := scripted(t)
	p, leave := lives(t, p)
	a, b := inDir(dir, "a", `[[text "one"]] [[hang]]`), inDir(dir, "b", `[[text "two"]] [[hang]]`)
	sa, sb := openLive(t, p, a), openLive(t, p, b)
	ta, tb := begin(t, sa, a), begin(t, sb, b)
	await[cli.TextDelta](ta)
	await[cli.TextDelta](tb)
	ta.detach()
	tb.detach()
	next, left := leave(sa, sb)
	s := adopted(t, next, left, a)
	turn := begin(t, s, a)
	await[cli.CaughtUp](turn)
	turn.detach()
	s.Detach()
	h := next.opts.Launcher.(*host.Launcher)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(left.PID)); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
}
