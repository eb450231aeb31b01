package acp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// peer is an agent that a test plays line by line: a cli.Launcher with one process.
type peer struct {
	t     *testing.T
	lines chan rpc.Message // messages from ductor
	dying func()           // called while a process is being stopped; may be nil
	hello string           // the answer to initialize, or an event in its place; empty for an ordinary answer

	modes   string      // of its sessions, as JSON; empty: none
	methods string      // how it can be logged in, as JSON; empty: it does not say
	locked  atomic.Bool // a session needs a log-in

	mu      sync.Mutex
	out     *io.PipeWriter
	started int
	sent    []rpc.Message // requests and notifications from ductor, which are checked when the test ends
}

// play returns a provider over a peer. serve answers all requests but prompts; it gets them in order.
func play(t *testing.T, change func(*Options)) (*Provider, *peer) {
	t.Helper()
	p := &peer{t: t, lines: make(chan rpc.Message, 100)}
	o := Options{
		ProviderOptions: cli.ProviderOptions{
			Path: "peer", Launcher: p, Env: func() []string { return nil }, Timing: cli.Timing{Grace: time.Second},
		}, Agent: testAgent,
		Holds: map[cli.PermissionMode]Holding{cli.Plan: {}, cli.Ask: {}},
	}
	if change != nil {
		change(&o)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range p.sent {
			checkSent(t, m)
		}
	})
	return New(o), p
}

func (p *peer) LookPath(name string) (string, error)                            { return "/bin/" + name, nil }
func (p *peer) Left(context.Context) ([]cli.LeftRun, error)                     { return nil, nil }
func (p *peer) Discard(context.Context, cli.RunID) error                        { return nil }
func (p *peer) Settled(cli.TurnID)                                              {}
func (p *peer) Attach(context.Context, cli.LeftRun, int64) (cli.Process, error) { return nil, io.EOF }

// Start returns the process. It answers initialize and session/new; the test plays everything else.
func (p *peer) Start(context.Context, cli.Command) (cli.Process, error) {
	in, input := io.Pipe()
	output, out := io.Pipe()
	p.mu.Lock()
	p.out = out
	p.started++
	p.mu.Unlock()
	proc := &fakeProcess{peer: p, in: input, out: output, end: out, done: make(chan struct{})}
	go p.serve(in)
	return proc, nil
}

func (p *peer) serve(in io.Reader) {
	r := bufio.NewReader(in)
	sessions := 0
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m rpc.Message
		if err := json.Unmarshal(line, &m); err != nil {
			p.t.Errorf("ductor sent %q: %v", line, err)
			return
		}
		p.mu.Lock()
		p.sent = append(p.sent, m)
		p.mu.Unlock()
		switch m.Method {
		case methodInitialize:
			p.greet(m)
		case methodNew:
			if p.locked.Load() {
				p.say(`{"id":%s,"error":{"code":-32000,"message":"Authentication required"}}`, m.ID)
				continue
			}
			sessions++
			p.say(`{"id":%s,"result":{"sessionId":"s%d","modes":%s}}`, m.ID, sessions, cmp.Or(p.modes, "null"))
		default:
			p.lines <- m
		}
	}
}

// greet answers initialize.
func (p *peer) greet(m rpc.Message) {
	switch p.hello {
	case "", "banner":
		if p.hello != "" {
			p.say("Welcome!\nAn update is available.")
		}
		p.say(`{"id":%s,"result":{"protocolVersion":1,"authMethods":%s,"agentCapabilities":{"loadSession":true}}}`,
			m.ID, cmp.Or(p.methods, "[]"))
	case "silent":
	case "garbage":
		p.say("Usage: agent")
	case "die":
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.out.Close()
	default:
		p.say(`{"id":%s,"result":%s}`, m.ID, p.hello)
	}
}

// say prints a line.
func (p *peer) say(format string, args ...any) {
	p.mu.Lock()
	out := p.out
	p.mu.Unlock()
	_, _ = fmt.Fprintf(out, format+"\n", args...) // it may be closed by now
}

// hear returns the next line with a method; "" is a response.
func (p *peer) hear(method string) rpc.Message {
	p.t.Helper()
	select {
	case m := <-p.lines:
		if m.Method != method {
			p.t.Fatalf("ductor sent %q %s, want %q", m.Method, m.Result, method)
		}
		return m
	case <-time.After(time.Minute):
		p.t.Fatalf("ductor never sent %q", method)
		return rpc.Message{}
	}
}

func (p *peer) text(session, words string) {
	p.say(`{"method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, session, words)
}

func (p *peer) ask(id int, session, tool, kind string) {
	p.say(`{"id":%d,"method":"session/request_permission","params":{"sessionId":%q,"options":[{"optionId":"always","kind":"allow_always"},`+
		`{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}],"toolCall":{"toolCallId":%q,"title":"do %s","kind":%q,"status":"pending"}}}`,
		id, session, tool, tool, kind)
}

func (p *peer) endTurn(m rpc.Message) { p.say(`{"id":%s,"result":{"stopReason":"end_turn"}}`, m.ID) }

// fakeProcess is a process without a program.
type fakeProcess struct {
	peer *peer
	in   *io.PipeWriter
	out  *io.PipeReader
	end  *io.PipeWriter
	once sync.Once
	done chan struct{}
}

func (f *fakeProcess) Run() cli.RunID                        { return "run" }
func (f *fakeProcess) PID() int                              { return 1 }
func (f *fakeProcess) Stdin() io.WriteCloser                 { return f.in }
func (f *fakeProcess) Stdout() io.Reader                     { return f.out }
func (f *fakeProcess) When(int64) time.Time                  { return time.Time{} }
func (f *fakeProcess) StderrTail() string                    { return "its last words" }
func (f *fakeProcess) Begin(context.Context, cli.Mark) error { return nil }
func (f *fakeProcess) Ended(int64)                           {}
func (f *fakeProcess) Interrupt() error                      { return nil }
func (f *fakeProcess) Done() <-chan struct{}                 { return f.done }
func (f *fakeProcess) Exit() cli.ExitStatus                  { return cli.ExitStatus{Code: 3} }
func (f *fakeProcess) Detach()                               { _ = f.out.CloseWithError(cli.ErrDetached) }
func (f *fakeProcess) Stop(context.Context, time.Duration) error {
	if f.peer.dying != nil {
		f.peer.dying()
	}
	f.once.Do(func() { _ = f.end.Close(); _ = f.in.Close(); close(f.done) })
	return nil
}

// playedTurn is a turn that runs while the test plays the agent.
type playedTurn struct {
	t      *testing.T
	events chan cli.Event
	cancel context.CancelCauseFunc
}

func begin(t *testing.T, s cli.Session, req cli.Request) *playedTurn {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	p := &playedTurn{t: t, events: make(chan cli.Event, 1000), cancel: cancel}
	go func() {
		defer close(p.events)
		s.Turn(ctx, req, func(ev cli.Event) { p.events <- ev })
	}()
	t.Cleanup(func() { cancel(nil) })
	return p
}

// until returns the next event of a type.
func until[T cli.Event](p *playedTurn) T {
	p.t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case ev, open := <-p.events:
			if got, ok := ev.(T); ok {
				return got
			}
			if !open {
				p.t.Fatalf("the turn ended before %T came", *new(T))
			}
		case <-deadline:
			p.t.Fatalf("%T never came", *new(T))
		}
	}
}

func wish(t *testing.T, prompt string) cli.Request {
	return cli.Request{Dir: t.TempDir(), Turn: cli.TurnID(strings.ReplaceAll(t.Name(), "/", "-")), Prompt: prompt, Attended: true}
}
