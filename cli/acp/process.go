package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/cli/acp/workspace"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
	"ductor/lang"
)

const (
	leaveWait = 300 * time.Millisecond // time for an idle process to exit after its input was closed
	maxServed = 128                    // requests of an agent that ductor serves at the same time
	maxEarly  = 64                     // maximum number of sessions in agentProcess.early
)

// agentProcess is one process of the agent, with its sessions. Safe for concurrent use.
type agentProcess struct {
	*shared.Process
	provider *Provider
	opts     atomic.Pointer[Options] // contains the program's quirks after the handshake
	sessions shared.Members[*session]
	early    sync.Map // cli.AgentSessionID to *update: the first updates of sessions whose ID ductor does not know yet

	// hello is the agent's response to the handshake. It is valid when the process is ready.
	hello initialized

	served  atomic.Int64 // number of requests that ductor is serving
	serving sync.Map     // requests that ductor is serving: ID to context.CancelCauseFunc
}

// Greet implements shared.Server. It performs the handshake.
func (proc *agentProcess) Greet(ctx context.Context) error {
	o := proc.options()
	hello := map[string]any{
		"protocolVersion": protocolVersion, "clientInfo": map[string]string{"name": "ductor", "title": "ductor", "version": "1"},
		"clientCapabilities": map[string]any{
			"fs": map[string]bool{"readTextFile": !o.NoWorkspace, "writeTextFile": !o.NoWorkspace}, "terminal": !o.NoWorkspace,
			"auth":        map[string]bool{"terminal": !o.NoWorkspace}, // ductor can show users a log-in command
			"elicitation": map[string]none{"form": {}, "url": {}},
			"session":     map[string]any{"configOptions": map[string]any{"boolean": none{}}},
		},
	}
	err := proc.callFor(ctx, o.Start, methodInitialize, hello, &proc.hello) // starting the agent may take long
	if err != nil {
		f := o.failure(err)
		if f.Kind == cli.TimedOut {
			f.Kind = cli.BadOutput
			f.Because(lang.NewMessage("failure.no-greeting"))
			if said := proc.Peer().Unread(); said != "" {
				f.Because(lang.NewMessage("failure.no-greeting-but", said))
			}
		}
		return f
	}
	switch v := proc.hello.ProtocolVersion; {
	case v < protocolVersion:
		return cli.Failf(cli.BadOutput, o.Agent, "failure.acp-version", v, protocolVersion, o.Agent.Name())
	case v > protocolVersion:
		return cli.Failf(cli.BadOutput, o.Agent, "failure.acp-version", v, protocolVersion, "ductor")
	}
	logins := o.logins(proc.hello.AuthMethods)
	proc.provider.login.methods.Store(&logins)
	proc.identify(proc.hello.AgentInfo.Name, logins)
	return nil
}

// identify records which program the process runs, with the program's quirks and log-in methods.
func (proc *agentProcess) identify(program string, logins []cli.Login) {
	o := *proc.options()
	o.quirks, o.advice = o.quirksOf(program), o.loginAdvice(logins)
	o.reported, _ = entryNamed(program)
	proc.provider.reported.Store(&o.reported)
	proc.opts.Store(&o)
}

func (proc *agentProcess) options() *Options { return proc.opts.Load() }

// call sends a request and waits for the response, at most for Options.CallLimit. If the agent responds with an error,
// the returned error wraps an *rpc.Error.
func (proc *agentProcess) call(ctx context.Context, method string, params, result any) error {
	return proc.callFor(ctx, proc.options().CallLimit, method, params, result)
}

func (proc *agentProcess) callFor(ctx context.Context, limit time.Duration, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := proc.Peer().Call(ctx, method, params, result)
	if errors.Is(err, rpc.ErrEnded) {
		return proc.Failure()
	}
	return err
}

// respond sends a response to a request of the agent. It ignores errors, because they occur only after the agent has
// exited. ductor detects the exit elsewhere.
func (proc *agentProcess) respond(id json.RawMessage, result any) {
	_ = proc.Peer().Reply(id, result, nil)
}

// cancel cancels a request to the user. The agent then ends the request without an answer.
func (proc *agentProcess) cancel(a *ask) { proc.respond(a.id, a.cancelled()) }

func (proc *agentProcess) refuse(id json.RawMessage, code int, why string) {
	_ = proc.Peer().Refuse(id, code, why)
}

// news is a message or a decision for a session. Exactly one field is set.
type news struct {
	update  *update
	ask     *ask
	over    *overParams
	decided *decided
	served  *served
}

// Changed implements rpc.Handler.
func (proc *agentProcess) Changed(c turn.Change) { proc.sessions.Changed(c) }

// keepEarly stores an update for a session whose ID ductor does not know yet. Only the goroutine that reads the agent's
// output calls keepEarly.
func (proc *agentProcess) keepEarly(id cli.AgentSessionID, u *update) {
	kept := 0
	proc.early.Range(func(any, any) bool {
		kept++
		return true
	})
	if kept >= maxEarly { // drop updates whose sessions were never opened
		proc.early.Clear()
	}
	proc.early.Store(id, u)
}

// updated delivers an update to its session. An update with the options of a new session may arrive before ductor knows
// the session's ID. updated then stores the update.
func (proc *agentProcess) updated(p updateParams, m rpc.Message) {
	id := cli.AgentSessionID(p.SessionID)
	s, ok := proc.sessions.Of(id)
	if !ok && p.Update.Kind == updateOffers {
		proc.keepEarly(id, &p.Update)
		s, ok = proc.sessions.Of(id)
	}
	if ok {
		s.deliver(news{update: &p.Update}, m.End, len(m.Params))
	}
}

// Notified implements rpc.Handler.
func (proc *agentProcess) Notified(m rpc.Message) {
	switch m.Method {
	case methodUpdate:
		var p updateParams
		var mismatch *json.UnmarshalTypeError // this error means that only one field is unreadable
		if err := json.Unmarshal(m.Params, &p); err != nil && !errors.As(err, &mismatch) {
			return
		}
		if p.Update.Kind == updateInfo {
			var named struct {
				Update map[string]json.RawMessage `json:"update"`
			}
			_ = json.Unmarshal(m.Params, &named) // the same JSON was parsed before
			_, p.Update.titled = named.Update["title"]
		}
		proc.updated(p, m)
	case methodCancelRequest, methodElicited:
		var p overParams
		if json.Unmarshal(m.Params, &p) != nil {
			return
		}
		if cancel, serves := proc.serving.Load(rpc.Text(p.RequestID)); serves {
			cancel.(context.CancelCauseFunc)(errCancelled)
		}
		for _, s := range proc.sessions.All() {
			s.deliver(news{over: &p}, m.End, 0)
		}
	}
}

// Requested implements rpc.Handler. It handles requests for permission, forms, files and commands.
func (proc *agentProcess) Requested(m rpc.Message) bool {
	if m.Method == methodAsk || m.Method == methodElicit {
		proc.asked(m)
		return true
	}
	serves := !proc.options().NoWorkspace && workspace.Serves(m.Method)
	if serves {
		proc.serveRequest(m)
	}
	return serves
}

// asked handles a request for permission, or a request with a form for the user.
func (proc *agentProcess) asked(m rpc.Message) {
	a := &ask{id: m.ID, raw: m.Params}
	err := json.Unmarshal(m.Params, &a.params)
	if m.Method == methodElicit && err == nil {
		a.form, err = readForm(m.Params)
	}
	if err != nil {
		proc.refuse(m.ID, rpc.CodeBadParams, "the request cannot be read: "+cli.ShortLine(err.Error()))
		return
	}
	if proc.State() == shared.Detached { // the next process of ductor will answer
		return
	}
	s, ok := proc.sessions.Of(cli.AgentSessionID(a.params.SessionID))
	if !ok || !s.deliver(news{ask: a}, m.End, 0) {
		proc.cancel(a)
	}
}

// serveRequest serves an agent's request to access a file or to run a command.
func (proc *agentProcess) serveRequest(m rpc.Message) {
	var p sessionParams
	_ = json.Unmarshal(m.Params, &p) // an unreadable request names no session
	s, known := proc.sessions.Of(cli.AgentSessionID(p.SessionID))
	switch {
	case proc.State() == shared.Detached: // the next process of ductor will answer
	case !known:
		proc.refuse(m.ID, rpc.CodeBadParams, "there is no such session")
	case proc.Peer().Past(): // the previous process of ductor may already have handled the request
		s.noteServed(m, nil, lostEnd(m.Method))
		proc.refuse(m.ID, rpc.CodeInternal, "ductor was restarted; ask again")
	case proc.served.Add(1) > maxServed:
		proc.served.Add(-1)
		proc.refuse(m.ID, rpc.CodeInternal, "too many requests at a time")
	default:
		ctx, cancel := context.WithCancelCause(proc.Life())
		proc.serving.Store(rpc.Text(m.ID), cancel)
		proc.Go(func() { proc.serveOne(ctx, m, s) })
	}
}

var errCancelled = &rpc.Error{Code: codeCancel, Message: "cancelled"}

func (proc *agentProcess) serveOne(ctx context.Context, m rpc.Message, s *session) {
	result, err := s.workspace.Serve(ctx, m.Method, m.Params)
	if cancel, serves := proc.serving.LoadAndDelete(rpc.Text(m.ID)); serves {
		cancel.(context.CancelCauseFunc)(nil)
	}
	proc.served.Add(-1)
	s.noteServed(m, result, err)
	var refused *rpc.Error
	switch {
	case err == nil:
		proc.respond(m.ID, result)
	case errors.As(err, &refused):
		proc.refuse(m.ID, refused.Code, refused.Message)
	default:
		proc.refuse(m.ID, rpc.CodeInternal, cli.ShortLine(err.Error()))
	}
}
