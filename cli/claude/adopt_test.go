package claude

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
)

// lives is one agent during several processes of ductor.
type lives struct {
	t    *testing.T
	dir  string // directory of the runs
	p    *Provider
	host *host.Launcher
	s    cli.Session
}

func newLives(t *testing.T, p *Provider) *lives {
	l := &lives{t: t, dir: t.TempDir(), p: p}
	l.p, l.host = again(t, p, l.dir)
	return l
}

func (l *lives) open(mode cli.Mode, req cli.Request) cli.Session {
	l.t.Helper()
	s, err := l.p.Open(l.t.Context(), mode, req)
	if err != nil {
		l.t.Fatal(err)
	}
	l.s = s
	return s
}

// leave ends this process of ductor.
func (l *lives) leave(k *talk) {
	l.t.Helper()
	if k != nil {
		k.cancel(cli.ErrDetached)
		if r := k.end(); !r.Detached && r.Err != nil {
			l.t.Errorf("detached from: %+v", r)
		}
	}
	l.s.Detach()
	if err := l.host.Close(); err != nil {
		l.t.Error(err)
	}
	l.p, l.host = again(l.t, l.p, l.dir)
}

// adopt continues the work of the previous process. A req without a Turn is for an idle process.
func (l *lives) adopt(req cli.Request) cli.Session {
	l.t.Helper()
	left := clitest.Left(l.t, l.host, l.dir)
	if len(left) != 1 {
		l.t.Fatalf("left are %+v", left)
	}
	s, err := l.p.Adopt(l.t.Context(), left[0], req)
	if err != nil {
		l.t.Fatalf("adopt: %v", err)
	}
	l.s = s
	l.t.Cleanup(func() { _ = s.Close(l.t.Context()) })
	return s
}

// Wherever and however often ductor detaches, a turn's prompt is sent once, its tool runs once, and its answer is
// complete.
func TestDetachAtAnyPoint(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		for i := range 6 {
			t.Run(fmt.Sprintf("%s %d", mode, i), func(t *testing.T) {
				p, dir := scripted(t, nil)
				count := filepath.Join(dir, "count")
				req := cli.Request{Dir: dir, Permission: cli.Bypass, Turn: "T1", Conversation: "7/0",
					Prompt: `windmill [[text "one two three four" chunk=2 delay=1ms]][[tool cmd="echo x >>` + count + `; sleep 0.05"]][[text "five six seven eight" chunk=2 delay=1ms]]`}
				l := newLives(t, p)
				s := l.open(mode, req)
				var r cli.Result
				for hop := 0; ; hop++ {
					k := begin(t, s, req)
					if hop == 3 {
						r = k.end()
						break
					}
					if !k.some(rnd.IntN(24) + max(1-hop, 0)) { // before the first event the turn may not have started
						r = k.end()
						break
					}
					l.leave(k)
					if r = k.events[len(k.events)-1].(cli.Result); !r.Detached {
						return // it was over before ductor could detach
					}
					s = l.adopt(req)
				}
				if r.Err != nil || r.Text != "one two three four\n\nfive six seven eight" {
					t.Errorf("answered %+v", r)
				}
				if b, err := os.ReadFile(count); string(b) != "x\n" {
					t.Errorf("the tool ran %q, %v", b, err)
				}
				req.Turn, req.Resume, req.Prompt = "T2", r.AgentSessionID, "[[history]]"
				if mode == cli.OneShot || !s.Fits(req) {
					if mode == cli.Live {
						t.Error("the session does not fit its next turn")
					}
					s = clitest.Open(t, l.p, mode, req)
				}
				if r := begin(t, s, req).end(); strings.Count(r.Text, "windmill") != 1 {
					t.Errorf("the session remembers %q, %+v", r.Text, r.Err)
				}
			})
		}
	}
}

// some waits for some events. It returns false if the turn ended first.
func (k *talk) some(n int) bool {
	for range n {
		if _, ok := k.next(); !ok {
			return false
		}
	}
	return true
}

// The cost of a turn counts from its start, in whichever process of ductor.
func TestAdoptedTotals(t *testing.T) {
	p, dir := scripted(t, nil)
	req := cli.Request{Dir: dir, Turn: "T1", Conversation: "7/0", Prompt: `[[usage in=100 out=10 cost=0.5]][[text "one"]]`}
	l := newLives(t, p)
	s := l.open(cli.Live, req)
	one := begin(t, s, req).end()
	req.Turn, req.Resume, req.Prompt = "T2", one.AgentSessionID, `[[usage in=7 out=3 cost=0.25]][[text "two" delay=50ms chunk=1]]`
	k := begin(t, s, req)
	until[cli.TextDelta](k)
	l.leave(k)
	s = l.adopt(req)
	two := begin(t, s, req).end()
	if two.Text != "two" || two.Consumed.CostUSD != 0.25 || two.Consumed.Usage != (cli.Usage{Input: 7, Output: 3}) {
		t.Errorf("got %+v", two)
	}
	req.Turn, req.Prompt = "T3", `[[usage in=9 out=1 cost=0.125]][[text "three"]]`
	if !s.Fits(req) {
		t.Fatal("it does not fit the next turn")
	}
	if r := begin(t, s, req).end(); r.Consumed.CostUSD != 0.125 || r.Consumed.Usage.Input != 9 || r.Text != "three" {
		t.Errorf("got %+v", r)
	}
}

// An unanswered question is asked again with the same id, and its answer arrives. An answered question is not repeated.
func TestAdoptedApprovals(t *testing.T) {
	p, dir := scripted(t, nil)
	gate := filepath.Join(dir, "gate")
	req := cli.Request{Dir: dir, Attended: true, Turn: "T1", Conversation: "7/0",
		Prompt: `[[ask cmd="until [ -e ` + gate + ` ]; do sleep 0.01; done; echo >>` + gate + `"]][[ask cmd="echo two >>` + gate + `"]][[text "Done."]]`}
	l := newLives(t, p)
	s := l.open(cli.Live, req)
	k := begin(t, s, req)
	first := until[cli.ApprovalAsked](k)
	l.leave(k)
	if gone := clitest.Of[cli.ApprovalWithdrawn](k.events); len(gone) > 0 {
		t.Errorf("what outlives ductor is withdrawn: %+v", gone)
	}

	s = l.adopt(req)
	k = begin(t, s, req)
	if same := until[cli.ApprovalAsked](k); same.ID != first.ID || same.Title != first.Title {
		t.Errorf("asked again %+v, was %+v", same, first)
	}
	decide(t, s, first.ID, cli.Decision{Allow: true})
	l.leave(k)

	s = l.adopt(req)
	k = begin(t, s, req)
	until[cli.CaughtUp](k)
	must(t, os.WriteFile(gate, nil, 0o600))
	second := until[cli.ApprovalAsked](k)
	if second.ID == first.ID {
		t.Error("what was answered is asked again")
	}
	decide(t, s, second.ID, cli.Decision{Allow: true})
	if r := k.end(); r.Err != nil || !strings.HasSuffix(r.Text, "Done.") {
		t.Errorf("answered %+v", r)
	}
	if b, err := os.ReadFile(gate); string(b) != "\ntwo\n" {
		t.Errorf("the tools wrote %q, %v", b, err)
	}
}

// steeredAndAdopted begins a turn, sends it the message S1, and continues it in another process of ductor.
func steeredAndAdopted(t *testing.T, p *Provider, req cli.Request) (cli.Session, *talk) {
	t.Helper()
	l := newLives(t, p)
	s := l.open(cli.Live, req)
	k := begin(t, s, req)
	until[cli.TextDelta](k)
	steer(t, s, cli.Request{Turn: "S1", Prompt: `[[text "And this."]]`})
	l.leave(k)
	s = l.adopt(req)
	return s, begin(t, s, req)
}

// A message sent during a turn belongs to it in every process of ductor, and every process knows that it was read.
func TestAdoptedSteer(t *testing.T) {
	p, dir := scripted(t, nil)
	gate := filepath.Join(dir, "gate")
	req := cli.Request{Dir: dir, Permission: cli.Bypass, Turn: "T1", Conversation: "7/0",
		Prompt: `[[text "Some words."]][[tool cmd="until [ -e ` + gate + ` ]; do sleep 0.01; done"]]`}
	s, k := steeredAndAdopted(t, p, req)
	until[cli.SessionStarted](k)
	steer(t, s, cli.Request{Turn: "S1", Prompt: `[[text "And this."]]`})
	must(t, os.WriteFile(gate, nil, 0o600))
	if r := k.end(); r.Err != nil || !strings.HasPrefix(r.Text, "Some words.") || strings.Count(r.Text, "And this.") != 1 || !strings.HasSuffix(r.Text, "And this.") ||
		!slices.Equal(r.Steered.Read, []cli.TurnID{"S1"}) {
		t.Errorf("answered %+v", r)
	}
}

// A message that the previous process of ductor sent, and that Claude drops, is returned.
func TestAdoptedSteerIsTakenBack(t *testing.T) {
	p, dir := scripted(t, nil)
	req := cli.Request{Dir: dir, Turn: "T1", Conversation: "7/0", Prompt: `[[text "Some words."]][[hang]]`}
	_, k := steeredAndAdopted(t, p, req)
	until[cli.TextDelta](k)
	k.cancel(cli.ErrReplaced)
	if r := k.end(); len(r.Steered.Read) > 0 || !slices.Equal(r.Steered.Unread, []cli.TurnID{"S1"}) {
		t.Errorf("answered %+v", r.Steered)
	}
}

// If a task is still open after a turn, the next ductor attaches to the process, and passes on Claude's output when the
// task is done. After that no task is open.
func TestATaskInTheBackgroundOutlivesDuctor(t *testing.T) {
	begun := strings.Join(lines(initLine, echoOf(heard{UUID: idOf("T1")}), textLines("A", "mine"),
		`{"type":"system","subtype":"task_started","task_id":"b1"}`, doneLine), "\n") + "\n"
	for name, ended := range map[string][]string{
		"done":   lines(`{"type":"system","subtype":"task_notification","task_id":"b1","status":"completed"}`, initLine, textLines("B", "tests are green"), backgroundResult),
		"killed": {`{"type":"system","subtype":"task_notification","task_id":"b1","status":"killed"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, _ := fakeLive(t)
				go func() {
					<-f.heard
					f.print(strings.TrimSuffix(begun, "\n"))
				}()
				clitest.Play(t.Context(), s, cli.Request{Prompt: "hi", Turn: "T1"})
				if !s.Info().Background || len(f.marks()) != 2 || f.marks()[1].Turn != cli.BackgroundMark || f.marks()[1].Output != int64(len(begun)) {
					t.Fatalf("it is said to work: %v, and recorded are %+v", s.Info().Background, f.marks())
				}
				left := cli.LeftRun{Run: "fake", Alive: true, OutputEnd: int64(len(begun)), Input: cli.LeftInput{End: 10}, Marks: f.marks()}
				left.Purpose = cli.Purpose{Agent: agent, Mode: cli.Live, Conversation: "7/0"}

				var got []cli.BackgroundResult
				f = newFakeProcess()
				p := New(Options{
					ProviderOptions: cli.ProviderOptions{Launcher: fakeLauncher{process: f}, Env: func() []string { return nil }},
					Background:      func(_ cli.Conversation, r cli.BackgroundResult) { got = append(got, r) },
				})
				next, err := p.Adopt(t.Context(), left, cli.Request{Conversation: "7/0"})
				if err != nil {
					t.Fatal(err)
				}
				if !next.Info().Background {
					t.Error("it is not known to work")
				}
				f.print(ended...)
				synctest.Wait()
				if next.Info().Background {
					t.Error("it is said to work for ever")
				}
				if err := next.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if want := strings.Count(name, "done"); len(got) != want || want == 1 && got[0].Text != "tests are green" {
					t.Errorf("handed on %+v", got)
				}
			})
		})
	}
}

// A turn that the process does not know cannot be resumed, nor can the rest of a one-shot turn.
func TestWhatCannotBeAdopted(t *testing.T) {
	p, _ := scripted(t, nil)
	for name, tt := range map[string]struct {
		mode cli.Mode
		turn cli.TurnID
	}{"a turn without a mark": {cli.Live, "T9"}, "a rest of one turn": {cli.OneShot, ""}, "a probe": {"", ""}} {
		left := cli.LeftRun{Run: "none", Purpose: cli.Purpose{Agent: agent, Mode: tt.mode}, Marks: []cli.Mark{{Turn: "T1"}}}
		if _, err := p.Adopt(t.Context(), left, cli.Request{Turn: tt.turn}); cli.AsFailure(agent, err) == nil {
			t.Errorf("%s is adopted", name)
		}
	}
}

// Ductor detaches from the real Claude at four points of four turns: at once, in the middle of a text, in the middle of
// its shell tool, and while it asks.
func TestRealAdoption(t *testing.T) {
	p, c, api := real(t, nil)
	words := strings.TrimSpace(strings.Repeat("word ", 30))
	req := cli.Request{Dir: c.Work, Attended: true, Conversation: "7/0", AllowedTools: []string{"Bash"}}
	l := newLives(t, p)
	s := l.open(cli.Live, req)
	for _, point := range []struct {
		name  string
		reach func(k *talk, count string)
	}{
		{"at once", func(*talk, string) {}}, // as soon as the turn's start is recorded
		{"in mid text", func(k *talk, _ string) { k.text(20) }},
		{"in a tool", func(k *talk, count string) {
			until[cli.ToolStarted](k)
			awaitFile(t, count)
		}},
		{"while it asks", func(k *talk, _ string) { until[cli.ApprovalAsked](k) }},
	} {
		name := strings.ReplaceAll(point.name, " ", "-")
		count, asked := filepath.Join(c.Work, "count-"+name), filepath.Join(c.Work, "asked-"+name)
		req.Turn = cli.TurnID(name)
		req.Prompt = `[[start]]windmill-` + name + ` [[text "` + words + `" delay=10ms chunk=5]][[tool cmd="echo x >>` + count + `; sleep 0.7"]]` +
			`[[write path="` + asked + `" text="x"]][[text "Done."]]`
		k := begin(t, s, req)
		awaitMark(t, s, req.Turn)
		point.reach(k, count)
		l.leave(k)
		s = l.adopt(req)
		r := allowAll(t, s, begin(t, s, req))
		if r.Err != nil || r.Text != words+"\n\nDone." {
			t.Errorf("%s: answered %+v", name, r)
		}
		if b, err := os.ReadFile(count); string(b) != "x\n" {
			t.Errorf("%s: the tool ran %q, %v", name, b, err)
		}
		if _, err := os.Stat(asked); err != nil {
			t.Errorf("%s: what was allowed was not done: %v", name, err)
		}
		if n := strings.Count(lastAsked(api), "windmill-"+name+" "); n != 1 {
			t.Errorf("%s: the model was asked %d times", name, n)
		}
		req.Resume = r.AgentSessionID
	}
	req.Turn, req.Prompt = "T9", `[[start]][[text "next"]]`
	if r := begin(t, s, req).end(); r.Text != "next" {
		t.Errorf("then %+v", r)
	}
}

// allowAll continues the turn to its end and allows its requests.
func allowAll(t *testing.T, s cli.Session, k *talk) cli.Result {
	t.Helper()
	for {
		ev, ok := k.next()
		if !ok {
			return k.end()
		}
		if a, is := ev.(cli.ApprovalAsked); is {
			decide(t, s, a.ID, cli.Decision{Allow: true})
		}
	}
}

// awaitFile waits until a tool has created a file.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no tool ever made %s", filepath.Base(path))
		}
	}
}

// awaitMark waits until the start of a turn is recorded.
func awaitMark(t *testing.T, s cli.Session, turn cli.TurnID) {
	t.Helper()
	p := s.(*live).run.process
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		recorded := p.mark.Turn == turn
		p.mu.Unlock()
		if recorded {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the beginning of the turn is never recorded")
		}
	}
}
