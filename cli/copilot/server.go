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
)

const (
	callWait     = time.Minute // maximum time for requests that need no model, on a small busy machine
	protocolWant = 3           // version of the protocol that ductor speaks
	eventMethod  = "session.event"
)

// server is a live process with its sessions. Safe for concurrent use.
type server struct {
	*shared.Process
	shared.Members[*shared.Session[news]]
	provider *Provider
}

// news is a message for a turn: an event of its session, or a request of Copilot. A message without both makes the turn
// check whether it has ended. A turn can miss text deltas without harm, because Copilot later sends the complete text.
type news struct {
	event   event
	request *rpc.Message
}

func (p *Provider) newServer(process *shared.Process) *server {
	return &server{Process: process, provider: p}
}

// Greet implements shared.Server. It performs the handshake, and returns an error if the program does not speak the
// required version of the protocol.
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

// refusal returns the failure of a failed handshake. If the error shows that this version of Copilot has no suitable
// server, the failure explains that to users.
func refusal(err error) error {
	var refused *rpc.Error
	var f *cli.Failure
	if errors.As(err, &refused) || errors.As(err, &f) && f.Kind == cli.Refused && strings.Contains(f.Detail, "--headless") {
		return noServer("this version has no server that ductor can speak with")
	}
	return err
}

// noServer returns the failure for a version of Copilot that has no suitable server.
func noServer(why string) *cli.Failure {
	return cli.Failf(cli.UnknownFailure, Agent, "%s: update it with `copilot update`, or set agents.copilot.mode to \"one-shot\", which cannot ask", why)
}

// Requested implements rpc.Handler. It passes a request to the running turn of its session.
func (h *server) Requested(m rpc.Message) bool {
	var params struct {
		SessionID cli.AgentSessionID `json:"sessionId"`
	}
	_ = json.Unmarshal(m.Params, &params) // an unreadable request belongs to no session
	s, ok := h.Of(params.SessionID)
	return ok && forUser(m.Method) && s.Deliver(shared.Item[news]{Message: news{request: &m}, End: m.End}, 0)
}

// Notified implements rpc.Handler. It passes an event to its session.
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
	s, ok := h.Of(params.SessionID)
	if !ok || !s.Deliver(shared.Item[news]{Message: news{event: params.Event}, End: m.End}, len(m.Params)) {
		h.betweenTurns(params.SessionID, params.Event)
	}
}

// betweenTurns denies a permission request if no turn is running. Work in the background can cause such a request.
func (h *server) betweenTurns(id cli.AgentSessionID, e event) {
	if e.Type != permissionRequested || h.Peer().Past() || h.State() == shared.Detached {
		return
	}
	if f, err := e.fields(); err == nil && !f.ResolvedByHook {
		_ = h.Peer().Send(methodAllow, denial(id, f.RequestID, noUserAllows))
	}
}

// call sends a request and waits for the response, for at most callWait.
func (h *server) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	err := h.Peer().Call(ctx, method, params, result)
	if errors.Is(err, rpc.ErrEnded) {
		return exitFailure(h.Failure())
	}
	return err
}

// serverFor returns the command of a live process for req, and the key of the process. Requests with the same command
// line and environment share a process.
func (p *Provider) serverFor(req cli.Request) (key string, command cli.Command) {
	req.Servers = cli.WithoutForeign(req.Servers) // other servers belong to a session, not to the process
	args, env := serverArgs(req), p.environment(req)
	key = cli.Digest(p.opts.Path, args, env)
	return key, cli.Command{Path: p.opts.Path, Args: args, Env: env, For: cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: key}}
}

// inquire starts a process, sends one request to it and ends the process.
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

// probeWait is the maximum time for inquire, including the start of the process.
const probeWait = 15 * time.Second

// Shares implements cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	key, _ := p.serverFor(req)
	return p.pool.PID(key)
}

var _ cli.Sharer = (*Provider)(nil)
