package copilot

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// adoptLive resumes one turn of an agent process that the previous ductor process left. The process is
// attached to once, for all that is in it.
func (p *Provider) adoptLive(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "an idle process of several conversations is kept, and not adopted")
	}
	i := slices.IndexFunc(left.Marks, func(m cli.Mark) bool { return m.Turn == req.Turn })
	if i < 0 || left.Marks[i].Note == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "the process does not know this turn")
	}
	mark := left.Marks[i]
	h, err := p.attach(ctx, left, req.Turn)
	if err != nil {
		return nil, err
	}
	s := newLive(p, req)
	s.server, s.id, s.slot = h, cli.AgentSessionID(mark.Note), h.enter(cli.AgentSessionID(mark.Note))
	s.model, s.applied = req.Model, applied{model: req.Model, effort: req.Effort, permission: req.Permission}
	s.adopted = &mark
	// The mark was recorded right before the prompt was written, and nothing else is written in between.
	s.asked = left.InputEnd > mark.Input || !left.Alive
	s.turns = 1
	return s, nil
}

// adoptWait is how long an attached process is kept for turns that no request resumes.
const adoptWait = time.Minute

// attach finds the process among those attached to, or attaches to it, and holds it for a turn.
func (p *Provider) attach(ctx context.Context, left cli.LeftRun, turn cli.TurnID) (*server, error) {
	key := "run/" + string(left.Run)
	unlock, err := p.servers.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if h := p.servers.attached(left.Run, turn); h != nil {
		return h, nil
	}
	from := left.OutputEnd
	for _, m := range left.Marks {
		from = min(from, m.Output)
	}
	process, err := p.opts.Launcher.Attach(ctx, left.Run, from)
	if err != nil {
		return nil, cli.StartFailure(Agent, err)
	}
	h := newServer(left.Setting, process, p.opts.Grace, rpc.Options{From: from, Past: true, Until: left.OutputEnd})
	awaited := map[cli.TurnID]*slot{}
	for _, m := range left.Marks {
		if !m.OfTurn() {
			continue
		}
		h.busy++
		s := newSlot()
		s.begin(m.Output) // what comes for it waits for its turn
		h.slots[cli.AgentSessionID(m.Note)] = s
		_ = h.expect(string(m.Turn), s) // fails only of too many turns
		if m.Turn != turn {
			awaited[m.Turn] = s
		}
	}
	h.former = true
	h.leftovers = slices.ContainsFunc(left.Marks, func(m cli.Mark) bool { return m.Turn == cli.SpoilMark })
	h.peer.Listen()
	p.servers.add(h)
	p.servers.mu.Lock()
	defer p.servers.mu.Unlock()
	p.servers.left = append(p.servers.left, h)
	if h.awaited = awaited; len(awaited) > 0 {
		h.users++
		time.AfterFunc(adoptWait, func() { p.giveUp(h) })
	}
	return h, nil
}

// attached is the process of a run that was attached to, held for a turn. It may be dead: what it said before
// is there all the same.
func (hs *servers) attached(run cli.RunID, turn cli.TurnID) *server {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.left {
		if h.process.Run() != run || h.users == 0 {
			continue
		}
		had := len(h.awaited)
		delete(h.awaited, turn)
		if had == 0 || len(h.awaited) > 0 { // else it takes the place of those that were waited for
			h.users++
		}
		return h
	}
	return nil
}

// giveUp gives the process back for the turns that no request resumed in time.
func (p *Provider) giveUp(h *server) {
	p.servers.mu.Lock()
	awaited := h.awaited
	h.awaited = nil
	p.servers.mu.Unlock()
	if len(awaited) == 0 {
		return
	}
	for _, s := range awaited {
		s.end()
	}
	if err := p.giveBack(context.Background(), h, false); err != nil {
		p.opts.Logger.Error("a copilot whose turns were not resumed did not end", "pid", h.process.PID(), "err", err)
	}
}
