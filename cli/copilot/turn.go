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

// liveTurn is one prompt of a live session, from its sending to its end. The goroutine of Turn owns all but the steering.
type liveTurn struct {
	s      *live
	server *server
	in     *inbox
	p      *parser
	loop   *turn.Turn[item]
	id     string // of the request that asks for it
	added  turn.Added
}

// Turn runs one prompt; see cli.Session.
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
	if end == turn.EndExit && r.Err == nil { // a message that was added to it was not answered
		r.Err = exitFailure(t.server.Failure())
	}
	out.Finish(r)
	s.end(t, end)
	t.server.TurnEnded(ctx, t.left(ctx, end))
}

// prepare makes the turn of a prompt, or of the one that was adopted, in a process that is ready for it.
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

// bind takes from the session what the turn works with; false if the session was closed before.
func (t *liveTurn) bind(req cli.Request, adopted *adopted) bool {
	p, _ := permissionOf(req.Permission) // checked when the session was opened or adjusted
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

// taking is how the dialect takes part in the turn.
func (t *liveTurn) taking(ctx context.Context, req cli.Request, adopted *adopted) turn.Loop[item] {
	limits := turn.LimitsOf(t.s.provider.opts.ProviderOptions)
	limits.Interrupt = limits.Grace // an abort need not show before the turn has ended
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
			t.s.begin(t) // what is sent into the turn comes after its prompt
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

// send asks for the turn. The mark is recorded right before it is written; a turn that was left has one.
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

// compactParams ask for the context to be shortened. A hint that is longer than Copilot takes is cut.
func compactParams(id cli.AgentSessionID, req cli.Request) map[string]any {
	params := map[string]any{"sessionId": id, "trigger": "manual"}
	if hint := strings.TrimSpace(req.Prompt); hint != "" {
		params["customInstructions"] = cli.Shorten(hint, mostHint)
	}
	return params
}

const mostHint = 4000

// promptParams are a prompt as session.send takes it.
func promptParams(id cli.AgentSessionID, req cli.Request, mode string) map[string]any {
	params := map[string]any{"sessionId": id, "prompt": req.Prompt, "mode": mode}
	if list := attachments(req.Images); len(list) > 0 {
		params["attachments"] = list
	}
	return params
}

// take handles one item, and says whether the turn has ended. What is caught up with is told to its end: a message that was
// added to the turn may have begun it again.
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

// left says what the turn leaves in the process. The protocol has no environment for a session, by which what its tools
// started could be told from what those of others did, so the process does not outlive an aborted turn that ran tools.
func (t *liveTurn) left(ctx context.Context, end turn.End) shared.TurnEnd {
	replaced := cli.Replaced(ctx) && t.p.phase == ended && !t.loop.Killed() // Copilot ended the tools that ran, too
	switch {
	case end == turn.EndDetached:
		return shared.EndDetached
	case t.loop.Cut() && len(t.p.tools) > 0 && !replaced:
		return shared.EndLeftovers
	}
	return shared.EndOver
}
