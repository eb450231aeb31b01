package copilot

import (
	"cmp"
	"context"
	"strings"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// liveTurn is one turn of a live session, from the sending of its prompt to its end. The goroutine of Turn owns
// everything but the steering.
type liveTurn struct {
	s      *live
	server *server
	in     *inbox
	p      *parser
	loop   *turn.Turn[item]
	id     string // of the request with the prompt
	added  turn.Added
}

// Turn implements cli.Session.
func (s *live) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := turn.NewEmitter(Agent, s.provider.opts.Now, emit)
	t, err := s.prepare(ctx, req, out)
	if err != nil {
		out.Finish(cli.StartResult(ctx, Agent, err))
		return
	}
	t.p.name()
	end := t.loop.Run(ctx)
	t.added.Close()
	t.server.Peer().Forget(t.id)
	t.p.asks.Close(end == turn.EndDetached)
	r := t.p.outcome(end, func() cli.Result { return t.loop.Outcome(end, Agent, t.server.Failure) })
	if end == turn.EndExit && r.Err == nil { // an added message was not answered
		r.Err = exitFailure(t.server.Failure())
	}
	out.Finish(r)
	s.end(t, end)
	t.server.TurnEnded(ctx, t.left(ctx, end))
}

// prepare returns the turn for a prompt, or the adopted turn, in a process that is ready for it.
func (s *live) prepare(ctx context.Context, req cli.Request, out *turn.Emitter) (*liveTurn, error) {
	adopted := s.takeAdopted()
	t := &liveTurn{s: s, p: newParser(out, req), id: sendPrefix + cmp.Or(string(req.Turn), uuid.NewString())}
	if adopted == nil {
		f := refused(req)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case f != nil:
			return nil, f
		}
		h, err := s.ready(ctx, req)
		if err != nil {
			return nil, err
		}
		t.server = h
	}
	if !t.bind(req, adopted) {
		if t.server != nil {
			t.server.TurnEnded(ctx, shared.EndOver)
		}
		return nil, cli.Failf(cli.UnknownFailure, Agent, "the session is closed")
	}
	t.loop = turn.New(t.taking(ctx, req, adopted))
	return t, nil
}

// bind connects the turn to the session. It returns false if the session was closed before.
func (t *liveTurn) bind(req cli.Request, adopted *adopted) bool {
	p, _ := permissionOf(req.Permission) // validated when the session was opened or adjusted
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return false
	}
	t.server = s.server
	if adopted != nil {
		t.in = adopted.in
	} else {
		t.in = turn.NewQueue[item](0)
		t.server.turns.Set(s.id, t.in)
	}
	t.p.session = cli.SessionStarted{AgentSessionID: s.id, Model: cmp.Or(s.model, t.p.session.Model)}
	t.p.asks = newAsks(t.p.out, t.server, s.id, policy{attended: req.Attended, judged: p.judged, protected: s.provider.opts.Protected, servers: req.Servers})
	if adopted != nil && adopted.asked {
		t.p.asks.Hold()
	}
	return true
}

// taking returns the dialect's part of the turn.
func (t *liveTurn) taking(ctx context.Context, req cli.Request, adopted *adopted) turn.Loop[item] {
	limits := turn.LimitsOf(t.s.provider.opts.ProviderOptions)
	limits.Interrupt = limits.Grace // an abort may take until the end of the turn
	source := turn.Source[item]{
		In: t.in, Gone: t.server.Gone(), Stop: t.server.StopAlone, Limits: limits, End: func(it item) int64 { return it.end },
	}
	if adopted != nil {
		source.Resumed = &turn.Resumed{From: adopted.mark.Output, Began: req.Began, When: t.server.Program().When}
	}
	return turn.Loop[item]{
		Source: source,
		Begin: func() {
			if adopted == nil || !adopted.asked {
				t.send(context.WithoutCancel(ctx), req, adopted != nil)
			}
			t.s.begin(t) // steered messages must come after the prompt
		},
		Handle: t.take,
		Interrupt: func() error {
			if req.Task == cli.TaskCompact {
				return t.server.Peer().Send("session.history.abortManualCompaction", map[string]any{"sessionId": t.p.session.AgentSessionID})
			}
			return t.server.Peer().Send("session.abort", map[string]any{"sessionId": t.p.session.AgentSessionID, "reason": "user_initiated"})
		},
		Waiting: t.p.asks.Waiting,
		Out:     t.p.out,
	}
}

// send sends the prompt. It records the mark right before writing; an adopted turn has a mark already.
func (t *liveTurn) send(ctx context.Context, req cli.Request, marked bool) {
	mark := cli.Mark{Turn: req.Turn, Note: string(t.p.session.AgentSessionID)}
	if marked {
		mark.Turn = ""
	}
	unsent := func(err error) {
		f := cli.AsFailure(Agent, err)
		if f.Kind == cli.UnknownFailure {
			f.Reason = "it could not be asked: " + f.Reason
		}
		t.in.Put(item{refused: f}, 0)
	}
	if req.Task == cli.TaskCommand {
		var err error
		if req.Prompt, err = t.server.expand(ctx, t.p.session.AgentSessionID, req.Prompt); err != nil {
			unsent(err)
			return
		}
	}
	prompt := rpc.Prompt{
		ID: t.id, Method: "session.send", Params: promptParams(t.p.session.AgentSessionID, req, "enqueue"),
		Mark: func(int) cli.Mark { return mark }, Answered: replies(t.in), Unsent: unsent,
	}
	if req.Task == cli.TaskCompact {
		prompt.Method, prompt.Params = "session.history.compact", compactParams(t.p.session.AgentSessionID, req)
	}
	t.server.Peer().Ask(ctx, prompt)
}

// compactParams returns the parameters for shortening the context. It cuts a hint that is too long for Copilot.
func compactParams(id cli.AgentSessionID, req cli.Request) map[string]any {
	params := map[string]any{"sessionId": id, "trigger": "manual"}
	if hint := strings.TrimSpace(req.Prompt); hint != "" {
		params["customInstructions"] = cli.Shorten(hint, mostHint)
	}
	return params
}

const mostHint = 4000

// promptParams returns a prompt as the parameters of session.send.
func promptParams(id cli.AgentSessionID, req cli.Request, mode string) map[string]any {
	params := map[string]any{"sessionId": id, "prompt": req.Prompt, "mode": mode}
	if list := attachments(req.Images); len(list) > 0 {
		params["attachments"] = list
	}
	return params
}

// take handles one item. It reports whether the turn has ended. A replay is read to its end, because an added message
// may have started the turn again.
func (t *liveTurn) take(it item) (end bool) {
	switch {
	case it.event.Type != "":
		if t.p.event(it.event) != nil {
			t.server.Peer().Garbage(it.event.Data)
		}
	case it.request != nil:
		t.p.asks.request(it.request)
	case it.refused != nil:
		t.p.phase, t.p.known.Err = ended, it.refused
	case it.Any():
		t.loop.Changed(it.Change)
		if it.CaughtUp {
			t.p.asks.Release()
		}
	}
	failed := t.p.phase == awaited && t.p.known.Err != nil
	return !t.loop.Past() && (failed || t.p.phase == ended && t.heard())
}

// left determines what the turn leaves in the process. The protocol has no environment per session that would
// distinguish the processes of its tools from those of other sessions. So the process does not outlive an aborted turn
// that ran tools.
func (t *liveTurn) left(ctx context.Context, end turn.End) shared.TurnEnd {
	replaced := cli.Replaced(ctx) && t.p.phase == ended && !t.loop.Killed() // Copilot ended the running tools, too
	switch {
	case end == turn.EndDetached:
		return shared.EndDetached
	case t.loop.Cut() && len(t.p.tools) > 0 && !replaced:
		return shared.EndLeftovers
	}
	return shared.EndOver
}
