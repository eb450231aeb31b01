package copilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

const (
	callWait     = time.Minute // for the answer to a request that needs no model, on a small busy machine
	protocolWant = 3           // the supported version of the protocol
	sendPrefix   = "send-"
	eventMethod  = "session.event"
)

// server is one live process with its sessions. Safe for concurrent use.
type server struct {
	*shared.Process
	turns shared.Members[*inbox] // running ones, and those to be resumed
}

// inbox holds the events of a session for its turn. Complete messages follow their deltas, so a turn that lost some
// deltas ends with the right text.
type inbox = turn.Queue[item]

// item is an event of a session. One of the fields is set; an item without any makes the turn check whether it is over.
type item struct {
	event   event
	request *rpc.Message // a request of the process
	refused *cli.Failure // session.send was rejected, or could not be sent
	turn.Change
	end int64 // offset after it, to detect the end of the replay
}

func newServer(process *shared.Process) *server { return &server{Process: process} }

// Greet implements shared.Server. It performs the handshake. A program without the protocol is an error.
func (h *server) Greet(ctx context.Context) error {
	var hello struct {
		Protocol int    `json:"protocolVersion"`
		Version  string `json:"version"`
	}
	if err := h.call(ctx, "connect", struct{}{}, &hello); err != nil {
		return refusal(err)
	}
	if hello.Protocol != protocolWant {
		return noServer(fmt.Sprintf("version %s speaks protocol %d, not %d", hello.Version, hello.Protocol, protocolWant))
	}
	return nil
}

// refusal returns why the handshake failed. It distinguishes a program without the server from a failed one.
func refusal(err error) error {
	var refused *rpc.Error
	var f *cli.Failure
	if errors.As(err, &refused) || errors.As(err, &f) && f.Kind == cli.Refused && strings.Contains(f.Detail, "--headless") {
		return noServer("this version has no server that ductor can speak with")
	}
	return err
}

// noServer returns the failure for a Copilot without the server that ductor needs.
func noServer(why string) *cli.Failure {
	return cli.Failf(cli.UnknownFailure, Agent, "%s: update it with `copilot update`, or set agents.copilot.mode to \"one-shot\", which cannot ask", why)
}

// Requested implements rpc.Handler. It delivers a request to its session, if that has a turn.
func (h *server) Requested(m rpc.Message) bool {
	var params struct {
		SessionID cli.AgentSessionID `json:"sessionId"`
	}
	_ = json.Unmarshal(m.Params, &params) // without a readable id it belongs to no session
	b, ok := h.turns.Of(params.SessionID)
	return ok && forUser(m.Method) && b.Put(item{request: &m, end: m.End}, 0)
}

// Notified delivers an event to its session.
func (h *server) Notified(m rpc.Message) {
	if m.Method != eventMethod {
		return
	}
	var params struct {
		SessionID cli.AgentSessionID `json:"sessionId"`
		Event     event              `json:"event"`
	}
	if json.Unmarshal(m.Params, &params) != nil || params.Event.Type == "" {
		h.Peer().Garbage(m.Params)
		return
	}
	b, runs := h.turns.Of(params.SessionID)
	if !runs || !b.Put(item{event: params.Event, end: m.End}, len(m.Params)) {
		h.betweenTurns(params.SessionID, params.Event)
	}
}

// betweenTurns rejects requests of a session without a running turn, such as one that works in the background.
func (h *server) betweenTurns(id cli.AgentSessionID, e event) {
	if e.Type != permissionRequested || h.Peer().Past() || h.State() == shared.Detached {
		return
	}
	if f, err := e.fields(); err == nil && !f.ResolvedByHook {
		_ = h.Peer().Send(methodAllow, denial(id, f.RequestID, noUserAllows))
	}
}

// Changed implements rpc.Handler. It notifies every turn.
func (h *server) Changed(c turn.Change) {
	it := item{Change: c}
	if c.Lost != nil {
		it.end = h.Peer().Handled()
	}
	for _, b := range h.turns.All() {
		b.Put(it, 0)
	}
}

// replies returns a function that handles two kinds of answers: the rejection of a turn's request, and the answer that
// ends a turn which only shortens the context.
func replies(b *inbox) func(rpc.Message) {
	return func(m rpc.Message) {
		var done struct {
			Success *bool           `json:"success"`
			Window  json.RawMessage `json:"contextWindow"`
		}
		switch {
		case m.Error != nil:
			b.Put(item{refused: cli.AsFailure(Agent, callFailure(m.Error)), end: m.End}, 0)
		case json.Unmarshal(m.Result, &done) != nil || done.Success == nil: // a message that was sent
		case !*done.Success:
			b.Put(item{refused: cli.Failf(cli.UnknownFailure, Agent, "it did not shorten its context"), end: m.End}, 0)
		default:
			if len(done.Window) > 0 {
				b.Put(item{event: event{Type: "session.usage_info", Data: done.Window}, end: m.End}, 0)
			}
			b.Put(item{event: event{Type: "session.idle"}, end: m.End}, 0)
		}
	}
}

// call sends a request and waits for the answer, at most callWait.
func (h *server) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	err := h.Peer().Call(ctx, method, params, result)
	if errors.Is(err, rpc.ErrEnded) {
		return exitFailure(h.Failure())
	}
	return err
}

// serverFor returns the command that starts a process for req, and its key: sessions with the same command line and
// environment share a process.
func (p *Provider) serverFor(req cli.Request) (key string, command cli.Command) {
	args, env := serverArgs(req), p.environment(req)
	key = cli.Digest(p.opts.Path, args, env)
	return key, cli.Command{Path: p.opts.Path, Args: args, Env: env, For: cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: key}}
}

// inquire sends one request to a process of its own, and ends the process.
func (p *Provider) inquire(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	_, command := p.serverFor(cli.Request{})
	command.For = cli.Purpose{}
	h, err := p.pool.Private(ctx, command)
	if err != nil {
		return err
	}
	err = h.call(ctx, method, params, result)
	if stopErr := h.Stop(context.WithoutCancel(ctx), 0); err == nil {
		err = stopErr
	}
	return err
}

// probeWait is how long Copilot may take to answer a request about itself, including its start.
const probeWait = 15 * time.Second

// Shares implements cli.Sharer. It returns the server for a session with req.
func (p *Provider) Shares(req cli.Request) int {
	key, _ := p.serverFor(req)
	return p.pool.PID(key)
}

var _ cli.Sharer = (*Provider)(nil)
