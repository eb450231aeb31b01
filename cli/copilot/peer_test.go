package copilot

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// peer is a server inside the test, which determines its answers.
type peer struct {
	t      *testing.T
	in     *io.PipeReader
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	out    *io.PipeWriter
	done   chan struct{}
	once   sync.Once
	exit   cli.ExitStatus
	stderr string

	mu      sync.Mutex
	marks   []cli.Mark
	heard   []message
	news    chan struct{}
	session string
	left    bool                          // it belongs to the previous process, and can be attached to
	answer  func(p *peer, m message) bool // reports whether it answered; otherwise the default does
}

// message is a message to the peer.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params map[string]any  `json:"params"`
	Result map[string]any  `json:"result"`
	Error  map[string]any  `json:"error"`
}

// newPeer returns a provider whose process is a peer.
func newPeer(t *testing.T, answer func(p *peer, m message) bool) (*Provider, *peer) {
	t.Helper()
	p := &peer{t: t, done: make(chan struct{}), news: make(chan struct{}, 1), answer: answer}
	p.in, p.stdin = io.Pipe()
	p.stdout, p.out = io.Pipe()
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		p.listen()
	}()
	t.Cleanup(func() {
		p.die(0)
		_ = p.in.Close()
		<-listening
	})
	return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: peerLauncher{p}, Env: func() []string { return nil }}}), p
}

func (p *peer) listen() {
	in := bufio.NewReader(p.in)
	for {
		body, err := frame(in)
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			p.t.Errorf("the peer was sent %q", body)
			continue
		}
		p.mu.Lock()
		p.heard = append(p.heard, m)
		p.mu.Unlock()
		if p.answer == nil || !p.answer(p, m) {
			p.usual(m)
		}
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
}

// frame reads a frame from ductor, which has one header.
func frame(in *bufio.Reader) ([]byte, error) {
	var length int
	if _, err := fmt.Fscanf(in, "Content-Length: %d\r\n\r\n", &length); err != nil {
		return nil, err
	}
	body := make([]byte, length)
	_, err := io.ReadFull(in, body)
	return body, err
}

// usual answers like a server without trouble.
func (p *peer) usual(m message) {
	switch m.Method {
	case "":
	case "connect":
		p.reply(m, `{"ok":true,"protocolVersion":3,"version":"1.0.102"}`)
	case "session.create", "session.resume":
		p.session = m.Params["sessionId"].(string)
		p.reply(m, `{"modelState":{"modelId":"gpt-5.2"}}`)
	case "session.send":
		p.reply(m, `{"messageId":"m1"}`)
		p.event("user.message", `{"content":"x","messageId":"m1"}`)
		p.event("assistant.message", `{"messageId":"a1","content":"Hi."}`)
		p.event("session.idle", `{}`)
	case "session.abort":
		p.reply(m, `{"success":true}`)
		p.event("abort", `{"reason":"user_initiated"}`)
		p.event("session.idle", `{"aborted":true}`)
	default:
		p.reply(m, `{"success":true}`)
	}
}

func (p *peer) raw(s string) { _, _ = io.WriteString(p.out, s) } // there is no reader after the end
func (p *peer) say(s string) { p.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(s), s)) }
func (p *peer) reply(m message, s string) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, s))
}
func (p *peer) refuse(m message, s string) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%q}}`, m.ID, s))
}

func (p *peer) event(kind, data string) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":%q,"event":{"type":%q,"data":%s}}}`, p.session, kind, data))
}

func (p *peer) die(code int) {
	p.once.Do(func() {
		p.exit = cli.ExitStatus{Code: code}
		_ = p.out.Close()
		close(p.done)
	})
}

// told waits until the peer got a message that match accepts.
func (p *peer) told(match func(message) bool) message {
	p.t.Helper()
	for {
		p.mu.Lock()
		for _, m := range p.heard {
			if match(m) {
				p.mu.Unlock()
				return m
			}
		}
		p.mu.Unlock()
		select {
		case <-p.news:
		case <-time.After(time.Minute):
			p.t.Fatal("the peer was never told")
		}
	}
}

func (p *peer) Run() cli.RunID        { return "run" }
func (p *peer) PID() int              { return 1 }
func (p *peer) Stdin() io.WriteCloser { return p.stdin }
func (p *peer) Stdout() io.Reader     { return p.stdout }
func (p *peer) When(int64) time.Time  { return time.Time{} }
func (p *peer) StderrTail() string    { return p.stderr }
func (p *peer) Interrupt() error      { return nil }
func (p *peer) Done() <-chan struct{} { return p.done }

// over reports whether the process has ended, or was detached.
func (p *peer) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
func (p *peer) Exit() cli.ExitStatus { return p.exit }
func (p *peer) Detach()              { p.die(0); _ = p.in.Close() }
func (p *peer) Stop(context.Context, time.Duration) error {
	p.die(-15)
	_ = p.in.Close()
	return nil
}

func (p *peer) Ended(int64) {}

func (p *peer) Begin(_ context.Context, m cli.Mark) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks = append(p.marks, m)
	return nil
}

// peerLauncher starts the one peer.
type peerLauncher struct{ peer *peer }

func (l peerLauncher) Start(context.Context, cli.Command) (cli.Process, error) { return l.peer, nil }
func (l peerLauncher) LookPath(name string) (string, error)                    { return name, nil }
func (l peerLauncher) Left(context.Context) ([]cli.LeftRun, error)             { return nil, nil }
func (l peerLauncher) Discard(context.Context, cli.RunID) error                { return nil }
func (l peerLauncher) Settled(cli.TurnID)                                      {}
func (l peerLauncher) Attach(context.Context, cli.LeftRun, int64) (cli.Process, error) {
	if l.peer.left {
		return l.peer, nil
	}
	return nil, fs.ErrNotExist
}

func TestAPeerThatIsHardToUnderstand(t *testing.T) {
	p, _ := newPeer(t, func(p *peer, m message) bool {
		if m.Method != "session.send" {
			return false
		}
		p.event("session.idle", `{}`) // of an earlier turn, so it does not end this one
		p.raw("what a nice day\r\n\r\n")
		p.raw("Content-Length: x\r\n")
		p.say(`{"no":`)
		p.say(`[]`)
		p.say(`{"jsonrpc":"2.0","id":"unknown","result":{}}`)
		p.say(`{"jsonrpc":"2.0","id":4.5,"result":{}}`)
		p.say(`{"jsonrpc":"2.0","id":99,"method":"hooks.invoke","params":{}}`)
		p.say(`{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":"other","event":{"type":"session.idle"}}}`)
		p.event("never.heard.of", `[1,2]`)
		p.event("assistant.message_delta", `"no object"`)
		p.event("user.message", `{"messageId":"m1"}`)
		p.event("assistant.message_delta", `{"messageId":"a","deltaContent":"Hi"}`)
		p.reply(m, `{"messageId":"m1"}`) // late
		p.reply(m, `{"messageId":"m1"}`) // and twice
		p.event("assistant.message", `{"messageId":"a","content":"Hi."}`)
		p.event("session.idle", `{}`)
		p.event("session.idle", `{}`)
		return true
	})
	req := cli.Request{Prompt: "hello", Turn: "t1"}
	s := clitest.Open(t, p, cli.Live, req)
	for range 2 {
		r, events := clitest.Play(t.Context(), s, req)
		if r.Err != nil || r.Text != "Hi." {
			t.Errorf("%+v, %+v", r, r.Err)
		}
		if named := clitest.Of[cli.SessionStarted](events); len(named) != 1 || named[0].Model != "gpt-5.2" {
			t.Errorf("named %+v", named)
		}
	}
	if !s.Info().Alive {
		t.Error("it is of no use any more")
	}
}

func TestUnknownRequestsAreRefused(t *testing.T) {
	p, peer := newPeer(t, func(p *peer, m message) bool {
		if m.Method == "session.send" {
			p.say(`{"jsonrpc":"2.0","id":99,"method":"hooks.invoke","params":{"sessionId":"` + p.session + `"}}`)
		}
		return false
	})
	req := cli.Request{Prompt: "hello"}
	clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req)
	if m := peer.told(func(m message) bool { return string(m.ID) == "99" }); m.Error["code"] != -32601.0 {
		t.Errorf("it was told %+v", m)
	}
}

func TestAServerThatCannotBeUsed(t *testing.T) {
	tests := map[string]struct {
		answer func(p *peer, m message) bool
		kind   cli.FailureKind
		says   string
	}{
		"too old": {func(p *peer, m message) bool {
			p.reply(m, `{"ok":true,"protocolVersion":2,"version":"0.9"}`)
			return true
		}, cli.UnknownFailure, "version 0.9 speaks protocol 2, not 3: update it with `copilot update`"},
		"no server": {func(p *peer, m message) bool {
			p.stderr = "error: unexpected argument '--headless' found\n"
			p.die(1)
			return true
		}, cli.UnknownFailure, "update it with `copilot update`, or run it one-shot"},
		"half a message": {func(p *peer, m message) bool {
			p.raw("Content-Length: 100\r\n\r\n{\"jsonrpc\":")
			p.die(0)
			return true
		}, cli.Crashed, ""},
		"only noise": {func(p *peer, m message) bool {
			p.raw("Welcome to Copilot!\n")
			p.die(0)
			return true
		}, cli.BadOutput, "ductor can't read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newPeer(t, tt.answer)
			_, err := p.Open(t.Context(), cli.Live, cli.Request{Prompt: "hello"})
			f := cli.AsFailure(Agent, err)
			if f == nil || f.Kind != tt.kind || !strings.Contains(f.Error(), tt.says) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestATurnThatIsRefused(t *testing.T) {
	p, _ := newPeer(t, func(p *peer, m message) bool {
		if m.Method == "session.send" {
			p.refuse(m, "Request session.send failed with message: Session not found for sessionId: x")
			return true
		}
		return false
	})
	req := cli.Request{Prompt: "hello"}
	if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req); r.Err == nil || r.Err.Kind != cli.ResumeFailed {
		t.Errorf("%+v", r.Err)
	}
}

const shellRequest = `{"requestId":"r1","permissionRequest":{"kind":"shell","fullCommandText":"rm -rf x","intention":"tidy up"}}`

// waits plays a turn up to a permission request.
func waits(p *peer, m message) bool {
	if m.Method != "session.send" {
		return false
	}
	p.reply(m, `{"messageId":"m1"}`)
	p.event("user.message", `{"messageId":"m1"}`)
	p.event("permission.requested", shellRequest)
	return true
}

func TestAProcessThatDiesWithAnApprovalOpen(t *testing.T) {
	p, peer := newPeer(t, waits)
	req := cli.Request{Prompt: "hello", Attended: true}
	s := clitest.Open(t, p, cli.Live, req)
	turn := begin(t.Context(), s, req)
	asked := await[cli.ApprovalAsked](t, turn)
	if asked.Title != "rm -rf x" || asked.Reason != "tidy up" || asked.Tool != "shell" {
		t.Errorf("asked %+v", asked)
	}
	peer.die(9)
	if gone := await[cli.ApprovalWithdrawn](t, turn); gone.ID != asked.ID {
		t.Errorf("withdrawn %+v", gone)
	}
	if r := turn.result(t); r.Err == nil || r.Err.Kind != cli.Crashed || r.Err.Code != 9 {
		t.Errorf("%+v", r.Err)
	}
	if err := s.(cli.Decider).Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); err != cli.ErrNotAsked {
		t.Errorf("afterwards: %v", err)
	}
	if s.Info().Alive {
		t.Error("it is said to be alive")
	}
}

func TestAnApprovalThatSomebodyElseGave(t *testing.T) {
	p, peer := newPeer(t, waits)
	req := cli.Request{Prompt: "hello", Attended: true}
	s := clitest.Open(t, p, cli.Live, req)
	turn := begin(t.Context(), s, req)
	asked := await[cli.ApprovalAsked](t, turn)
	peer.event("permission.completed", `{"requestId":"r1","result":{"kind":"approved"}}`)
	if gone := await[cli.ApprovalWithdrawn](t, turn); gone.ID != asked.ID {
		t.Errorf("withdrawn %+v", gone)
	}
	peer.event("session.idle", `{}`)
	if r := turn.result(t); r.Err != nil {
		t.Errorf("%+v", r.Err)
	}
}

func TestAnApprovalThatCameTooLate(t *testing.T) {
	p, _ := newPeer(t, func(p *peer, m message) bool {
		if m.Method == "session.permissions.handlePendingPermissionRequest" {
			p.reply(m, `{"success":false}`)
			p.event("session.idle", `{}`)
			return true
		}
		return waits(p, m)
	})
	req := cli.Request{Prompt: "hello", Attended: true}
	s := clitest.Open(t, p, cli.Live, req)
	turn := begin(t.Context(), s, req)
	asked := await[cli.ApprovalAsked](t, turn)
	if err := s.(cli.Decider).Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); err != cli.ErrNotAsked {
		t.Errorf("%v", err)
	}
	turn.result(t)
}

func TestQuestionsAndPlans(t *testing.T) {
	const question, plan = `"question":"Which?","choices":["Red","Blue"],"allowFreeform":true`,
		`"summary":"Two steps","planContent":"1. a\n2. b","actions":["interactive"],"recommendedAction":"interactive"`
	tests := map[string]struct {
		method, params string
		decision       cli.Decision
		want           map[string]any
	}{
		"a choice":          {methodInput, question, cli.Decision{Allow: true, Answers: [][]string{{"Blue"}}}, map[string]any{"answer": "Blue", "wasFreeform": false}},
		"own words":         {methodInput, question, cli.Decision{Allow: true, Answers: [][]string{{"Green"}}}, map[string]any{"answer": "Green", "wasFreeform": true}},
		"no answer":         {methodInput, question, cli.Decision{}, map[string]any{"answer": cli.NoAnswer, "wasFreeform": true}},
		"a plan":            {methodPlan, plan, cli.Decision{Allow: true}, map[string]any{"approved": true, "selectedAction": "interactive"}},
		"another plan":      {methodPlan, plan, cli.Decision{Reason: "shorter"}, map[string]any{"approved": false, "feedback": "shorter"}},
		"unattended: which": {methodInput, question, cli.Decision{}, map[string]any{"answer": cli.NoUserAnswers, "wasFreeform": true}},
		"unattended: plan":  {methodPlan, plan, cli.Decision{}, map[string]any{"approved": false, "feedback": noUserApproves}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, peer := newPeer(t, func(p *peer, m message) bool {
				switch {
				case m.Method == "session.send":
					p.event("user.message", `{"messageId":"m1"}`)
					p.event("user_input.requested", `{"requestId":"u1","question":"Which?"}`)
					p.say(`{"jsonrpc":"2.0","id":5,"method":"` + tt.method + `","params":{"sessionId":"` + p.session + `",` + tt.params + `}}`)
				case m.Method == "" && string(m.ID) == "5":
					p.event("session.idle", `{}`)
				default:
					return false
				}
				return true
			})
			req := cli.Request{Prompt: "hello", Attended: !strings.HasPrefix(name, "unattended")}
			s := clitest.Open(t, p, cli.Live, req)
			turn := begin(t.Context(), s, req)
			if req.Attended {
				if err := s.(cli.Decider).Decide(t.Context(), askedIn(t, turn, tt.method), tt.decision); err != nil {
					t.Fatal(err)
				}
			}
			if r := turn.result(t); r.Err != nil {
				t.Errorf("%+v", r.Err)
			}
			got := peer.told(func(m message) bool { return m.Method == "" && string(m.ID) == "5" }).Result
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("it was told %v, want %v", got, tt.want)
			}
		})
	}
}

// askedIn returns the id of the question or plan that a turn waits for.
func askedIn(t *testing.T, turn *playing, method string) cli.ApprovalID {
	t.Helper()
	if method == methodPlan {
		plan := await[cli.ApprovalAsked](t, turn)
		if plan.Tool != cli.PlanTool || plan.Detail != "Two steps\n\n1. a\n2. b" || plan.Title != "Two steps" {
			t.Errorf("asked %+v", plan)
		}
		return plan.ID
	}
	asked := await[cli.QuestionAsked](t, turn)
	if q := asked.Questions; len(q) != 1 || q[0].Text != "Which?" || len(q[0].Options) != 2 || !q[0].Free {
		t.Errorf("asked %+v", asked)
	}
	return asked.ID
}

func TestAQuestionThatWasGivenUp(t *testing.T) {
	p, peer := newPeer(t, func(p *peer, m message) bool {
		if m.Method != "session.send" {
			return false
		}
		p.event("user.message", `{"messageId":"m1"}`)
		p.event("user_input.requested", `{"requestId":"u1","question":"Which?"}`)
		p.say(`{"jsonrpc":"2.0","id":5,"method":"userInput.request","params":{"sessionId":"` + p.session + `","question":"Which?"}}`)
		return true
	})
	req := cli.Request{Prompt: "hello", Attended: true}
	turn := begin(t.Context(), clitest.Open(t, p, cli.Live, req), req)
	asked := await[cli.QuestionAsked](t, turn)
	peer.event("user_input.completed", `{"requestId":"u1"}`)
	if gone := await[cli.ApprovalWithdrawn](t, turn); gone.ID != asked.ID {
		t.Errorf("withdrawn %+v", gone)
	}
	peer.event("session.idle", `{}`)
	turn.result(t)
}

func TestAModelThatIsNotThere(t *testing.T) {
	p, _ := newPeer(t, func(p *peer, m message) bool {
		if m.Method == "session.model.switchTo" {
			p.refuse(m, "Request session.model.switchTo failed with message: Model 'x' is not available")
			return true
		}
		return false
	})
	req := cli.Request{Prompt: "hello"}
	s := clitest.Open(t, p, cli.Live, req)
	req.Model = "x"
	if r, _ := clitest.Play(t.Context(), s, req); r.Err == nil || r.Err.Kind != cli.UnknownModel || !strings.Contains(r.Err.Error(), "not available") {
		t.Errorf("%+v", r.Err)
	}
	req.Model = ""
	if r, _ := clitest.Play(t.Context(), s, req); r.Err != nil || r.Text != "Hi." {
		t.Errorf("afterwards: %+v, %+v", r, r.Err)
	}
}

// The mark is recorded before the prompt is written, and names the session.
func TestTurnsAreMarked(t *testing.T) {
	p, peer := newPeer(t, func(p *peer, m message) bool {
		if m.Method == "session.send" {
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.marks) != 1 || p.marks[0].Turn != "t1" || p.marks[0].Note != p.session || p.marks[0].Output == 0 {
				p.t.Errorf("marks %+v", p.marks)
			}
		}
		return false
	})
	req := cli.Request{Prompt: "hello", Turn: "t1"}
	if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req); r.Err != nil {
		t.Error(r.Err)
	}
	if m := peer.told(func(m message) bool { return m.Method == "session.send" }); string(m.ID) != `"send-t1"` {
		t.Errorf("the request is called %s", m.ID)
	}
}
