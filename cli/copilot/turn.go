package copilot

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// liveTurn is one turn of a live session. It implements shared.AgentTurn. Steer may use it on any goroutine. Everything
// else runs in the goroutine of Turn.
type liveTurn struct {
	*shared.Turn[news]
	s *session
	p *parser
}

func (s *session) Check(t *shared.Turn[news]) error {
	if f := refused(t.Req); f != nil {
		return f
	}
	return nil
}

func (s *session) Begin(ctx context.Context, t *shared.Turn[news]) (shared.AgentTurn[news], error) {
	if t.Adopted == nil {
		if err := s.adjust(ctx, t.Req); err != nil {
			return nil, err
		}
	}
	mode, _ := permissionOf(t.Req.Permission) // the mode is valid; otherwise the session could not have started
	p := newParser(t.Out, t.Req)
	s.mu.Lock()
	p.session = cli.SessionStarted{AgentSessionID: s.id, Model: cmp.Or(s.model, p.session.Model)}
	s.mu.Unlock()
	p.asks = newAsks(t.Out, s.server, s.id, policy{
		attended: t.Req.Attended, judged: mode.judged, protected: s.provider().opts.Protected, servers: t.Req.Servers,
	})
	return &liveTurn{Turn: t, s: s, p: p}, nil
}

func (t *liveTurn) Start() { t.p.name() }

func (t *liveTurn) Approvals() shared.Approvals { return t.p.asks }

func (t *liveTurn) Prompt(ctx context.Context) (p rpc.Prompt, err error) {
	req := t.Req
	mark := cli.Mark{Turn: req.Turn, Note: string(t.s.id)}
	p.Mark = func(int) cli.Mark { return mark }
	switch req.Task {
	case cli.TaskCompact:
		p.Method, p.Params = "session.history.compact", compactParams(t.s.id, req)
		return p, nil
	case cli.TaskCommand:
		if req.Prompt, err = t.s.server.expand(ctx, t.s.id, req.Prompt); err != nil {
			return p, err
		}
	}
	p.Method, p.Params = "session.send", promptParams(t.s.id, req, "enqueue")
	return p, nil
}

// Replied implements shared.AgentTurn. The response to a prompt is an error if Copilot rejected the prompt. The
// response to a compaction ends the turn.
func (t *liveTurn) Replied(m rpc.Message) error {
	var done struct {
		Success *bool           `json:"success"`
		Window  json.RawMessage `json:"contextWindow"`
	}
	switch {
	case m.Error != nil:
		return m.Error
	case json.Unmarshal(m.Result, &done) != nil || done.Success == nil: // response to a prompt, not to a compaction
		return nil
	case !*done.Success:
		return &cli.Failure{Kind: cli.UnknownFailure, Agent: Agent, Reason: "it did not shorten its context"}
	case len(done.Window) > 0:
		t.event(event{Type: "session.usage_info", Data: done.Window})
	}
	t.event(event{Type: "session.idle"})
	return nil
}

func (t *liveTurn) Interrupt() error {
	if t.Req.Task == cli.TaskCompact {
		return t.s.server.Peer().Send("session.history.abortManualCompaction", map[string]any{"sessionId": t.s.id})
	}
	return t.s.server.Peer().Send("session.abort", map[string]any{"sessionId": t.s.id, "reason": "user_initiated"})
}

// compactParams returns the parameters of session.history.compact. It shortens a hint that is too long for Copilot.
func compactParams(id cli.AgentSessionID, req cli.Request) map[string]any {
	params := map[string]any{"sessionId": id, "trigger": "manual"}
	if hint := strings.TrimSpace(req.Prompt); hint != "" {
		params["customInstructions"] = cli.Shorten(hint, mostHint)
	}
	return params
}

const mostHint = 4000

// promptParams returns the parameters of session.send for a prompt.
func promptParams(id cli.AgentSessionID, req cli.Request, mode string) map[string]any {
	params := map[string]any{"sessionId": id, "prompt": req.Prompt, "mode": mode}
	if list := attachments(req.Images); len(list) > 0 {
		params["attachments"] = list
	}
	return params
}

func (t *liveTurn) Handle(n news) {
	if n.request != nil {
		t.p.asks.request(n.request)
	} else if n.event.Type != "" {
		t.event(n.event)
	}
}

func (t *liveTurn) event(e event) {
	if t.p.event(e) != nil {
		t.s.server.Peer().Garbage(e.Data)
	}
}

// Over implements shared.AgentTurn. While the turn reads output from before a restart of ductor, Over returns false,
// because a message that a user added may have continued the turn after this output.
func (t *liveTurn) Over() bool {
	failed := t.p.phase == awaited && t.p.known.Err != nil
	return !t.Loop.Past() && (failed || t.p.phase == ended && t.p.added.End())
}

func (t *liveTurn) Late(n news) { t.s.server.betweenTurns(t.s.id, n.event) }

func (t *liveTurn) Result(end turn.End) cli.Result {
	r := t.p.outcome(end, func() cli.Result { return t.Loop.Outcome(end, Agent, t.s.server.Failure) })
	if end == turn.EndExit && r.Err == nil { // the process ended before it answered an added message
		r.Err = exitFailure(t.s.server.Failure())
	}
	r.Steered = t.p.added.Settle()
	return r
}

// End implements shared.AgentTurn. If an aborted turn ran tools, processes of these tools may still run. ductor cannot
// distinguish them from processes of other sessions, because all sessions of a Copilot process have the same
// environment variables. Copilot's process must therefore end.
//
// If ductor ends the turn before the model has read an added message, the session must end too, because the model could
// still read the message later.
func (t *liveTurn) End(end turn.End) (shared.Phase, shared.TurnEnd) {
	left := t.p.added.Close()
	if end == turn.EndExit || t.Loop.Cut() {
		t.p.added.DropAll()
	}
	t.s.mu.Lock()
	t.s.model = t.p.session.Model
	t.s.mu.Unlock()
	phase, leaves := shared.PhaseIdle, shared.EndOver
	if t.Loop.Cut() && (left || t.p.phase != ended) {
		phase = shared.PhaseSpent
	}
	// If Copilot ended the turn itself, it also ended the processes of the turn's tools.
	replaced := cli.Replaced(t.Context()) && t.p.phase == ended && !t.Loop.Killed()
	if t.Loop.Cut() && len(t.p.tools) > 0 && !replaced {
		leaves = shared.EndLeftovers
	}
	return phase, leaves
}
