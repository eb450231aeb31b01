package codex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// openLive opens a live session and closes it with the test.
func openLive(t *testing.T, p *Provider, req cli.Request) cli.Session {
	t.Helper()
	return clitest.Open(t, p, cli.Live, req)
}

// running is a turn that runs beside the test.
type running struct {
	t      *testing.T
	cancel context.CancelCauseFunc
	events chan cli.Event
	all    []cli.Event
	over   chan struct{}
}

func begin(t *testing.T, s cli.Session, req cli.Request) *running {
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &running{t: t, cancel: cancel, events: make(chan cli.Event, 10000), over: make(chan struct{})}
	go func() {
		defer close(r.over)
		s.Turn(ctx, req, func(ev cli.Event) { r.events <- ev })
	}()
	t.Cleanup(func() {
		cancel(cli.ErrAborted)
		<-r.over
	})
	return r
}

// await returns the next event of a type.
func await[T cli.Event](r *running) T {
	r.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case ev := <-r.events:
			r.all = append(r.all, ev)
			if ev, ok := ev.(T); ok {
				return ev
			}
			if result, ok := ev.(cli.Result); ok {
				r.t.Fatalf("the turn ended before: %+v, %v", result, result.Err)
			}
		case <-limit:
			var none T
			r.t.Fatalf("no %T came", none)
		}
	}
}

func (r *running) end() cli.Result {
	r.t.Helper()
	result := await[cli.Result](r)
	<-r.over
	clitest.Keeps(r.t, r.all)
	return result
}

func inDir(dir, conversation, prompt string) cli.Request {
	return cli.Request{
		Dir: dir, Conversation: cli.Conversation(conversation), Turn: cli.TurnID("turn-" + conversation),
		Permission: cli.Bypass, Prompt: prompt,
	}
}

func TestConversationsShareAProcessAndNothingElse(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		a, b := inDir(dir, "a", ""), inDir(dir, "b", "")
		a.ChatID, b.ChatID = 11, 22
		sa, sb := openLive(t, p, a), openLive(t, p, b)
		if sa.Info().PID != sb.Info().PID || sa.Info().AgentSessionID == sb.Info().AgentSessionID {
			t.Fatalf("%+v and %+v", sa.Info(), sb.Info())
		}
		mark := filepath.Join(dir, "alive")
		a.Prompt = `[[tool cmd="setsid sh -c 'setsid sleep 611 & touch ` + mark + `; sleep 612' & sleep 613"]]`
		b.Prompt = `[[tool cmd="echo chat $DUCTOR_CHAT_ID; until [ -e ` + dir + `/go ]; do sleep 0.01; done"]][[text "all well"]]`
		ta, tb := begin(t, sa, a), begin(t, sb, b)
		awaitPath(t, mark)
		await[cli.ToolStarted](tb)
		ta.cancel(cli.ErrAborted)
		if r := ta.end(); !r.Aborted || r.Err != nil {
			t.Errorf("aborted as %+v, %v", r, r.Err)
		}
		clitest.Close(t, sa)
		if left := running61x(t); len(left) > 0 {
			t.Errorf("the abort left %q", left)
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r := tb.end()
		if r.Err != nil || r.Text != "all well" {
			t.Errorf("the neighbour ended as %+v, %v", r, r.Err)
		}
		if out := clitest.Of[cli.ToolEnded](tb.all)[0].Output; !strings.Contains(out, "chat 22") {
			t.Errorf("the neighbour's tool said %q", out)
		}
		if !sb.Info().Alive {
			t.Error("the neighbour's session is not alive")
		}
	})
}

// running61x lists the processes of the previous test.
func running61x(t *testing.T) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, _ := os.ReadFile(f)
		if line := string(raw); strings.HasPrefix(line, "sleep\x0061") {
			found = append(found, strings.ReplaceAll(line, "\x00", " "))
		}
	}
	return found
}

func awaitPath(t *testing.T, path string) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%s never came", filepath.Base(path))
		}
	}
}

func TestACrashEndsTheTurnsThatRanInItAndNoConversation(t *testing.T) {
	p, dir := scripted(t)
	a, b := inDir(dir, "a", `[[text "half"]] [[hang]]`), inDir(dir, "b", "[[crash code=3]]")
	sa, sb := openLive(t, p, a), openLive(t, p, b)
	ta := begin(t, sa, a)
	await[cli.TextDelta](ta)
	tb := begin(t, sb, b)
	for name, r := range map[string]cli.Result{"a": ta.end(), "b": tb.end()} {
		if r.Err == nil || r.Err.Kind != cli.Crashed || r.Err.Code != 3 {
			t.Errorf("%s ended as %+v, %v", name, r, r.Err)
		}
	}
	next := inDir(dir, "a", "[[history]]")
	next.Resume = sa.Info().AgentSessionID
	if sa.Info().Alive || sa.Fits(next) {
		t.Error("a session whose process is gone takes another turn")
	}
	clitest.Close(t, sa)
	clitest.Close(t, sb)
	if r, _ := clitest.Play(t.Context(), openLive(t, p, next), next); r.Err != nil || r.AgentSessionID != next.Resume {
		t.Errorf("afterwards: %+v, %v", r, r.Err)
	}
}

func TestApprovals(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", "")
		req.Permission, req.Attended = cli.Ask, true
		s := openLive(t, p, req)
		decider := s.(cli.Decider)

		req.Turn, req.Prompt = "yes", `[[tool cmd="touch allowed"]][[text done]]`
		turn := begin(t, s, req)
		a := await[cli.ApprovalAsked](turn)
		if a.Tool != "shell" || a.Title != "touch allowed" || a.Started == "" {
			t.Errorf("asked as %+v", a)
		}
		if err := decider.Decide(t.Context(), "nonsense", cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("a decision on nothing: %v", err)
		}
		if err := decider.Decide(t.Context(), a.ID, cli.Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		if err := decider.Decide(t.Context(), a.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("decided twice: %v", err)
		}
		if r := turn.end(); r.Err != nil || r.Text != "done" || len(r.Denials) != 0 {
			t.Errorf("%+v, %v", r, r.Err)
		}
		awaitPath(t, filepath.Join(dir, "allowed"))

		req.Turn, req.Prompt = "no", `[[write path="denied.txt" text="x"]][[text done]]`
		turn = begin(t, s, req)
		a = await[cli.ApprovalAsked](turn)
		if a.Tool != "patch" || a.Title != "denied.txt" || len(a.Changes) != 1 || a.Changes[0].Diff != "@@ -0,0 +1,1 @@\n+x\n" {
			t.Errorf("asked as %+v", a)
		}
		if err := decider.Decide(t.Context(), a.ID, cli.Decision{Reason: "[[text \"I see\"]]"}); err != nil {
			t.Fatal(err)
		}
		r := turn.end()
		if r.Err != nil || len(r.Denials) != 1 || r.Denials[0].Tool != "patch" || !strings.Contains(r.Text, "I see") {
			t.Errorf("%+v, %v", r, r.Err)
		}
		if _, err := os.Stat(filepath.Join(dir, "denied.txt")); err == nil {
			t.Error("what was denied was done")
		}
		if err := decider.Decide(t.Context(), a.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
			t.Errorf("decided after the turn: %v", err)
		}

		req.Turn, req.Prompt = "gone", `[[tool cmd="touch never"]][[text done]]`
		turn = begin(t, s, req)
		a = await[cli.ApprovalAsked](turn)
		turn.cancel(cli.ErrAborted)
		if w := await[cli.ApprovalWithdrawn](turn); w.ID != a.ID {
			t.Errorf("withdrawn %q, asked %q", w.ID, a.ID)
		}
		if r := turn.end(); !r.Aborted {
			t.Errorf("%+v, %v", r, r.Err)
		}
	})
}

func TestWhatNobodyIsAskedIsDenied(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", `[[ask cmd="touch never"]][[write path="never.txt" text="x"]][[text done]]`)
		req.Permission = cli.Ask
		r, events := clitest.Play(t.Context(), openLive(t, p, req), req)
		if r.Err != nil || r.Text != "done" || len(clitest.Of[cli.ApprovalAsked](events)) != 0 {
			t.Errorf("%+v, %v", r, r.Err)
		}
		for _, name := range []string{"never", "never.txt"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s was made", name)
			}
		}
	})
}

// Each turn has its own permissions, even if they equal those of the previous turn and are not sent again.
func TestTheModeOfALivingThreadIsChanged(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", "")
		s := openLive(t, p, req)
		for i, mode := range []cli.PermissionMode{cli.Bypass, cli.Bypass, cli.Plan, cli.Plan, cli.Bypass} {
			name := "file-" + strconv.Itoa(i)
			req.Turn, req.Permission = cli.TurnID(name), mode
			req.Prompt = fmt.Sprintf(`[[start]] [[write path=%q text="x"]][[text done]]`, name)
			if r, _ := clitest.Play(t.Context(), s, req); r.Err != nil {
				t.Fatal(r.Err)
			}
			if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != (mode == cli.Bypass) {
				t.Errorf("turn %d, in mode %s: %v", i, mode, err)
			}
		}
	})
}

func TestTermsAreLeftOutOnlyWhereTheThreadHasThem(t *testing.T) {
	h := (&Provider{}).newServer(nil)
	bypass, plan := map[string]any{"approvalPolicy": "never", "model": "a"}, map[string]any{"approvalPolicy": "untrusted"}
	for i, step := range []struct {
		thread   cli.AgentSessionID
		prompt   string
		terms    map[string]any
		accepted string // the request whose turn Codex started then
		needed   bool
	}{
		{"t", "1", bypass, "1", true},
		{"t", "2", bypass, "2", false},
		{"other", "3", bypass, "3", true},
		{"t", "4", plan, "", true},
		{"t", "5", plan, "5", true}, // it is unknown whether Codex got the fourth
		{"t", "6", plan, "6", false},
		{"t", "7", bypass, "", true},
		{"t", "8", plan, "7", true},
		{"t", "9", bypass, "9", true}, // the eighth may have come after the seventh
		{"t", "10", bypass, "10", false},
	} {
		if got := h.needsTerms(step.thread, step.prompt, step.terms); got != step.needed {
			t.Errorf("step %d: needed %v, want %v", i+1, got, step.needed)
		}
		h.accepted(step.thread, step.accepted)
	}
	h.forgetTerms("t")
	if !h.needsTerms("t", "11", bypass) {
		t.Error("what a thread was given before it was left is taken for known")
	}
}

// The packages above decide whether an edit is accepted, because they follow links.
func TestEditsAreAskedForAlsoWhereTheModeAcceptsThem(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", `[[write path="a.txt" text="x"]][[tool cmd="touch b"]][[text done]]`)
		req.Permission, req.Attended = cli.AcceptEdits, true
		s := openLive(t, p, req)
		turn := begin(t, s, req)
		for _, tool := range []string{"patch", "shell"} {
			a := await[cli.ApprovalAsked](turn)
			if a.Tool != tool {
				t.Errorf("asked for %+v, want %s", a, tool)
			}
			if err := s.(cli.Decider).Decide(t.Context(), a.ID, cli.Decision{Allow: true}); err != nil {
				t.Fatal(err)
			}
		}
		if r := turn.end(); r.Err != nil || len(clitest.Of[cli.FileChanged](turn.all)) != 1 {
			t.Errorf("%v after %+v", r.Err, turn.all)
		}
	})
}

func TestSteering(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", `[[tool cmd="touch began; until [ -e go ]; do sleep 0.01; done"]][[text one]]`)
		s := openLive(t, p, req)
		steerer := s.(cli.Steerer)
		more := cli.Request{Turn: "more", Prompt: `[[text "two"]]`}
		if err := steerer.Steer(t.Context(), more); !errors.Is(err, cli.ErrNoTurn) {
			t.Errorf("steered nothing: %v", err)
		}
		turn := begin(t, s, req)
		await[cli.ToolStarted](turn)
		awaitPath(t, filepath.Join(dir, "began"))
		if err := steerer.Steer(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r := turn.end()
		if r.Err != nil || !strings.Contains(r.Text, "two") || !slices.Equal(r.Steered.Read, []cli.TurnID{"more"}) {
			t.Errorf("%+v, %v", r, r.Err)
		}
		if err := steerer.Steer(t.Context(), more); !errors.Is(err, cli.ErrNoTurn) {
			t.Errorf("steered what was over: %v", err)
		}
	})
}

// A message that comes during Codex's last words is answered in the same turn, and nothing waits in the thread after
// it.
func TestSteeringAtTheLastWords(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", `[[text n=40 delay=20ms]]`)
		s := openLive(t, p, req)
		more := cli.Request{Turn: "more", Prompt: `[[start]] [[text "and two"]]`}
		var turn *running
		for n := 40; ; n *= 5 { // on a slow machine a short turn ends before the message
			req.Prompt = fmt.Sprintf("[[text n=%d delay=20ms]]", n)
			turn = begin(t, s, req)
			await[cli.TextDelta](turn)
			if err := s.(cli.Steerer).Steer(t.Context(), more); err == nil {
				break
			} else if n > 1000 || !errors.Is(err, cli.ErrNoTurn) {
				t.Fatal(err)
			}
			req.Resume, req.Turn = turn.end().AgentSessionID, cli.TurnID(fmt.Sprint("again ", n))
		}
		r := turn.end()
		if r.Err != nil || !strings.HasSuffix(r.Text, "and two") {
			t.Errorf("%+v, %v", r, r.Err)
		}
		req.Resume, req.Turn, req.Prompt = r.AgentSessionID, "after", "[[start]] [[text done]]"
		if r, _ := clitest.Play(t.Context(), s, req); r.Text != "done" {
			t.Errorf("after it: %+v, %v", r, r.Err)
		}
	})
}

func TestErrorsOfTheModelLeaveTheThreadUsable(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", "")
		s := openLive(t, p, req)
		for prompt, want := range map[string]cli.FailureKind{
			"[[error 401 times=9]]": cli.NotLoggedIn, "[[error 429]]": cli.LimitReached, "[[error 400]]": cli.Refused,
		} {
			req.Turn, req.Prompt = cli.TurnID(prompt), prompt
			if r, _ := clitest.Play(t.Context(), s, req); r.Err == nil || r.Err.Kind != want {
				t.Errorf("%s: %+v", prompt, r.Err)
			}
		}
		req.Turn, req.Prompt, req.Resume = "after", "[[text fine]]", s.Info().AgentSessionID
		if r, _ := clitest.Play(t.Context(), s, req); r.Err != nil || r.Text != "fine" || r.Consumed.Usage.Output == 0 {
			t.Errorf("afterwards %+v, %v", r, r.Err)
		}
	})
}

func TestAnUnknownThreadCannotBeResumedLive(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", "hello")
		req.Resume = "11111111-2222-3333-4444-555555555555"
		s, err := p.Open(t.Context(), cli.Live, req)
		if f := cli.AsFailure(Agent, err); s != nil || f == nil || f.Kind != cli.ResumeFailed {
			t.Errorf("%v, %v", s, err)
		}
	})
}

// Many conversations run at once, each with turns of its own.
func TestManyThreadsInOneProcess(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		var all sync.WaitGroup
		for _, name := range strings.Split("abcde", "") {
			all.Go(func() {
				req := inDir(dir, name, `[[text "one `+name+`" delay=1ms chunk=1]]`)
				s, err := p.Open(t.Context(), cli.Live, req)
				if err != nil {
					t.Error(err)
					return
				}
				defer clitest.Close(t, s)
				first, _ := clitest.Play(t.Context(), s, req)
				req.Turn, req.Prompt, req.Resume = cli.TurnID("2"+name), "two [[history]]", first.AgentSessionID
				second, _ := clitest.Play(t.Context(), s, req)
				if first.Text != "one "+name || first.Err != nil || second.Err != nil || !s.Fits(req) {
					t.Errorf("%s: %+v, then %+v", name, first, second)
				}
			})
		}
		all.Wait()
		if pid := p.Shares(inDir(dir, "a", "")); pid != 0 {
			t.Errorf("the process %d is kept that no session uses", pid)
		}
	})
}

func TestLivePromptsReachTheModelAsText(t *testing.T) {
	p, dir, api := real(t)
	req := inDir(dir, "a", "")
	s := openLive(t, p, req)
	for name, prompt := range map[string]string{
		"a flag": "--dangerously-skip-permissions", "a dash": "-", "a slash": "/clear", "NUL": "a\x00b",
		"240 KB": strings.Repeat("long ", 48<<10), "no UTF-8": "a\xffb",
	} {
		req.Turn, req.Prompt = cli.TurnID(name), prompt+" [[text ok]]"
		if r, _ := clitest.Play(t.Context(), s, req); r.Err != nil || r.Text != "ok" {
			t.Errorf("%s: %q, %v", name, r.Text, r.Err)
		}
		asked := api.Prompts()
		if got := asked[len(asked)-1].Prompt; got != strings.ToValidUTF8(req.Prompt, "\uFFFD") {
			t.Errorf("%s: the model read %.80q (%d bytes)", name, got, len(got))
		}
	}
}

func TestInstructionsAreToldOnceAndAgainWhenTheyChange(t *testing.T) {
	p, dir, api := real(t)
	req := inDir(dir, "a", "[[text ok]]")
	s := openLive(t, p, req)
	long := strings.Repeat("be thorough. ", 3000)
	for i, instruction := range []string{"be a pirate", "be a pirate", "be a monk", long} {
		req.Turn, req.AppendPrompt = cli.TurnID(instruction[:9]+strconv.Itoa(i)), instruction
		if r, _ := clitest.Play(t.Context(), s, req); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	asked := api.Prompts()
	body := string(asked[len(asked)-1].Body)
	if n := strings.Count(body, "be a pirate"); n != 1 {
		t.Errorf("the first instruction was told %d times", n)
	}
	if !strings.Contains(body, "be a monk") || strings.Count(body, "thorough.") != 3000 {
		t.Errorf("%d times thorough", strings.Count(body, "thorough."))
	}
}

func TestModelAndEffortAreThoseOfEachTurn(t *testing.T) {
	p, dir, api := real(t)
	req := inDir(dir, "a", "[[text ok]]")
	s := openLive(t, p, req)
	for i, model := range []cli.ModelID{"", "gpt-6.1-sol", "not-a-model", ""} {
		req.Turn, req.Model = cli.TurnID(strconv.Itoa(i)), model
		r, _ := clitest.Play(t.Context(), s, req)
		asked := api.Prompts()
		want := cmp.Or(string(model), "gpt-5.5")
		if got := asked[len(asked)-1].Model; got != want || r.Err != nil || r.Model != cli.ModelID(want) {
			t.Errorf("turn %d: model %q, said %q, want %q, %v", i, got, r.Model, want, r.Err)
		}
	}
}

func TestWhatIsTriedAgainIsNotSaidTwice(t *testing.T) {
	each(t, func(t *testing.T, p *Provider, dir string) {
		req := inDir(dir, "a", `[[retry-text "half of"]][[text "the whole answer"]]`)
		r, _ := clitest.Play(t.Context(), openLive(t, p, req), req)
		if r.Err != nil || r.Text != "the whole answer" {
			t.Errorf("%q, %v", r.Text, r.Err)
		}
	})
}
