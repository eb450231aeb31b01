package acp

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"ductor/cli"
)

// claimWait is how long the turns of a run that was attached to may wait for somebody to go on with them. After
// it the run no longer lives for their sake.
const claimWait = time.Minute

// adopted is a turn of an earlier ductor.
type adopted struct {
	mark  cli.Mark
	note  note
	fails *cli.Failure // why it cannot be gone on with
	send  bool         // its prompt has not reached the agent
}

// Adopt goes on with a turn of an earlier ductor; see cli.Provider. An idle process is not adopted but kept, see Keep: it
// serves several conversations, and which ones nobody remembers. Sessions that were adopted take no further turn.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	agent := p.opts.Agent
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, agent, "an idle process of several conversations is not gone on with")
	}
	mark, n, ok := markOf(left, req.Turn)
	if !ok {
		return nil, cli.Failf(cli.UnknownFailure, agent, "what is left of it does not say where the turn began")
	}
	h := p.attach(left)
	select {
	case <-h.ready:
	case <-ctx.Done():
		return nil, cli.AsFailure(agent, context.Cause(ctx))
	}
	s := h.claim(n.Session)
	if s == nil {
		return nil, cli.Failf(cli.UnknownFailure, agent, "the turn has been gone on with already")
	}
	s.setting, s.ground = p.settingOf(req), newGround(h, req)
	s.adopted = adoption(left, mark, n, agent)
	if h.failed != nil {
		f := h.failed
		if err := s.Close(context.WithoutCancel(ctx)); err != nil {
			p.opts.Logger.Error("close a run that was left", "run", left.Run, "err", err)
		}
		return nil, f
	}
	return s, nil
}

// markOf finds the mark of a turn.
func markOf(left cli.LeftRun, turn cli.TurnID) (cli.Mark, note, bool) {
	for _, m := range left.Marks {
		if m.Turn != turn {
			continue
		}
		if n, ok := readNote(m); ok {
			return m, n, true
		}
	}
	return cli.Mark{}, note{}, false
}

func readNote(m cli.Mark) (note, bool) {
	var n note
	return n, json.Unmarshal([]byte(m.Note), &n) == nil && n.Session != ""
}

// adoption says whether the prompt reached the agent. Nothing is written between a mark and its prompt.
func adoption(left cli.LeftRun, mark cli.Mark, n note, agent cli.Agent) *adopted {
	a := &adopted{mark: mark, note: n}
	reached := left.InputEnd - mark.Input
	switch {
	case n.Sent || reached >= int64(n.Length):
	case reached > 0:
		a.fails = cli.Failf(cli.BadOutput, agent, "only a part of the message had reached it when ductor was stopped")
	case !left.Alive || left.InputClosed:
		a.fails = cli.Failf(cli.Crashed, agent, "it ended before the message reached it")
	default:
		a.send = true
	}
	return a
}

// attach takes over a run, once for all of its turns.
func (p *Provider) attach(left cli.LeftRun) *host {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.left[left.Run]; h != nil {
		return h
	}
	h := newHost(p, left.Setting)
	h.tainted, h.refs, h.unclaimed = true, 0, map[string]*session{}
	from := int64(math.MaxInt64)
	for _, m := range left.Marks {
		n, ok := readNote(m)
		if !ok {
			continue
		}
		from = min(from, m.Output)
		h.quirks = p.opts.Quirks.of(n.Name)
		s := h.stranger(n)
		h.prompts[s.promptID(m.Turn)] = s
	}
	p.left[left.Run] = h
	go h.takeOver(left, from)
	time.AfterFunc(claimWait, h.lapse)
	return h
}

// stranger is the session of a mark, made if it is not there. Nobody else has h yet.
func (h *host) stranger(n note) *session {
	s := h.sessions[n.Session]
	if s == nil {
		s = &session{
			host: h, provider: h.provider, id: cli.AgentSessionID(n.Session), inbox: newInbox(),
			asks: map[cli.AskID]*ask{}, heard: make(chan struct{}, 1), offered: make(chan struct{}),
			listening: true, spoiled: true, stranger: true,
		}
		h.sessions[n.Session], h.unclaimed[n.Session] = s, s
		h.refs++
	}
	s.model, s.totals = n.Model, n.Totals
	return s
}

func (h *host) takeOver(left cli.LeftRun, from int64) {
	defer close(h.ready)
	ctx, cancel := context.WithTimeout(h.life, h.provider.opts.StartLimit)
	defer cancel()
	process, err := h.provider.opts.Launcher.Attach(ctx, left.Run, from)
	if err != nil {
		h.failed = cli.Failf(cli.UnknownFailure, h.provider.opts.Agent, "what is left of the turn cannot be read")
		h.failed.Cause = err
		close(h.pumped)
		return
	}
	h.talk(process, from, left.OutputEnd)
}

// claim gives a session to whoever goes on with it; nil if it was given away.
func (h *host) claim(id string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.unclaimed[id]
	delete(h.unclaimed, id)
	return s
}

// lapse gives up the sessions that nobody claimed.
func (h *host) lapse() {
	h.mu.Lock()
	lapsed := len(h.unclaimed)
	clear(h.unclaimed)
	h.mu.Unlock()
	for range lapsed {
		if err := h.leave(context.Background(), parting{spoiled: true}); err != nil {
			h.provider.opts.Logger.Error("end a run that was left", "agent", string(h.provider.opts.Agent), "err", err)
		}
	}
}

// goOn takes an adopted turn to its end.
func (s *session) goOn(ctx context.Context, req cli.Request, out *cli.Emitter) {
	a := s.adopted
	s.adopted = nil
	t := s.newTurn(ctx, req, out)
	t.from, t.at = a.mark.Output, a.mark.Output
	t.replaying, t.answered = true, map[string]bool{}
	for _, id := range a.note.Answered {
		t.answered[id] = true
	}
	out.Past(t.clock)
	s.name(out)
	s.mu.Lock()
	s.marked, s.note = a.mark, a.note
	s.mu.Unlock()
	switch {
	case a.fails != nil:
		out.Pass(cli.CaughtUp{})
		s.settle(false, false)
		out.Finish(cli.Result{Err: a.fails})
		return
	case a.send:
		t.send = func() error { return s.askNow(req) }
	}
	t.run()
}

// askNow sends a prompt that an earlier ductor did not come to send.
func (s *session) askNow(req cli.Request) error {
	blocks, err := s.blocks(req)
	if err != nil {
		return err
	}
	line, err := encode(request{
		JSONRPC: "2.0", ID: s.promptID(req.Turn), Method: methodPrompt,
		Params: promptParams{SessionID: string(s.id), Prompt: blocks},
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	n := s.note
	s.mu.Unlock()
	n.Length = len(line)
	s.ask(req, line, n)
	return nil
}

// clock says when what is told happened: in the past for what is caught up with.
func (t *turn) clock() time.Time {
	if t.replaying {
		if at := t.s.host.process.When(max(t.at-1, 0)); !at.IsZero() {
			return at
		}
	}
	return t.s.provider.opts.Now()
}

// caughtUp begins the present: what nobody answered yet is asked again.
func (t *turn) caughtUp() {
	if !t.replaying {
		return
	}
	t.replaying = false
	t.out.Pass(cli.CaughtUp{})
	open := t.open
	t.open = nil
	for _, a := range open {
		if !a.tool.ended {
			t.put(a)
		}
	}
	if t.send != nil {
		t.sendErr = t.send()
		t.send = nil
	}
}
