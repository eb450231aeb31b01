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
	callWait     = time.Minute // for the answer to a question that asks no model, on a small box that is busy
	protocolWant = 3           // the version of the protocol that this package speaks
	sendPrefix   = "send-"
	eventMethod  = "session.event"
)

// server is one live process and the sessions in it. Safe for concurrent use.
type server struct {
	*shared.Process
	turns shared.Members[*inbox] // that run, and those to be resumed
}

// inbox is where what concerns a session waits for its turn. Whole messages come after their deltas, so that a turn that
// lost some ends with the right text.
type inbox = turn.Queue[item]

// item is something that concerns a session: one of the fields is set, or none to have the turn look whether it is over.
type item struct {
	event   event
	request *rpc.Message // the process asks us
	refused *cli.Failure // session.send was, or could not be sent
	turn.Change
	end int64 // offset after it, for the clock of what is caught up with
}

func newServer(process *shared.Process) *server { return &server{Process: process} }

// Greet shakes hands; see shared.Server. A program without the protocol is an error.
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

// refusal is why the server did not shake hands. A program without the server is told from one that failed.
func refusal(err error) error {
	var refused *rpc.Error
	var f *cli.Failure
	if errors.As(err, &refused) || errors.As(err, &f) && f.Kind == cli.Refused && strings.Contains(f.Detail, "--headless") {
		return noServer("this version has no server that ductor can speak with")
	}
	return err
}

// noServer is the failure of a Copilot without the server that ductor speaks with.
func noServer(why string) *cli.Failure {
	return cli.Failf(cli.UnknownFailure, Agent, "%s: update it with `copilot update`, or set agents.copilot.mode to \"one-shot\", which cannot ask", why)
}

// Requested hands a request to the session it is of, if that has a turn; see rpc.Handler.
func (h *server) Requested(m rpc.Message) bool {
	var params struct {
		SessionID cli.AgentSessionID `json:"sessionId"`
	}
	_ = json.Unmarshal(m.Params, &params) // what names no session is of none
	b, ok := h.turns.Of(params.SessionID)
	return ok && forUser(m.Method) && b.Put(item{request: &m, end: m.End}, 0)
}

// Notified hands an event to the session it is of.
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

// betweenTurns refuses what a session asks for while no turn runs, as one does that works in the background.
func (h *server) betweenTurns(id cli.AgentSessionID, e event) {
	if e.Type != permissionRequested || h.Peer().Past() || h.State() == shared.Detached {
		return
	}
	if f, err := e.fields(); err == nil && !f.ResolvedByHook {
		_ = h.Peer().Send(methodAllow, denial(id, f.RequestID, noUserAllows))
	}
}

// Changed tells every turn what happened to the output; see rpc.Handler.
func (h *server) Changed(c turn.Change) {
	it := item{Change: c}
	if c.Lost != nil {
		it.end = h.Peer().Handled()
	}
	for _, b := range h.turns.All() {
		b.Put(it, 0)
	}
}

// replies takes the refusal of what asks for a turn, and the answer that ends one which only shortens the context.
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

// call asks and waits for the answer, no longer than callWait.
func (h *server) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	err := h.Peer().Call(ctx, method, params, result)
	if errors.Is(err, rpc.ErrEnded) {
		return exitFailure(h.Failure())
	}
	return err
}

// serverFor is the command that starts a process for req, and its key: sessions with the same command line and environment
// share a process.
func (p *Provider) serverFor(req cli.Request) (key string, command cli.Command) {
	args, env := serverArgs(req), p.environment(req)
	key = cli.Digest(p.opts.Path, args, env)
	return key, cli.Command{Path: p.opts.Path, Args: args, Env: env, For: cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: key}}
}

// inquire puts one question to a process of its own, and ends it.
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

// probeWait is how long Copilot may take to answer a question about itself, its start included.
const probeWait = 15 * time.Second

// Shares is the server that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	key, _ := p.serverFor(req)
	return p.pool.PID(key)
}

var _ cli.Sharer = (*Provider)(nil)
