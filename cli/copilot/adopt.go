package copilot

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
)

// adoptLive goes on with one turn of a process that an earlier ductor left. The process is attached to once, for all that
// is in it.
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
	s.hub, s.id, s.slot = h, cli.AgentSessionID(mark.Note), h.enter(cli.AgentSessionID(mark.Note))
	s.model, s.applied = req.Model, applied{model: req.Model, effort: req.Effort, permission: req.Permission}
	s.adopted = &mark
	// The mark was recorded right before the prompt was written, and nothing else is written in between.
	s.asked = left.InputEnd > mark.Input || !left.Alive
	s.turns = 1
	return s, nil
}

// adoptWait is how long an attached process is kept for turns that nobody goes on with.
const adoptWait = time.Minute

// attach finds the process among those attached to, or attaches to it, and holds it for a turn.
func (p *Provider) attach(ctx context.Context, left cli.LeftRun, turn cli.TurnID) (*hub, error) {
	key := "run/" + string(left.Run)
	unlock, err := p.hubs.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if h := p.hubs.attached(left.Run, turn); h != nil {
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
	slots := map[cli.AgentSessionID]*slot{}
	busy := 0
	awaited := map[cli.TurnID]*slot{}
	for _, m := range left.Marks {
		if !m.OfTurn() {
			continue
		}
		busy++
		s := newSlot()
		s.begin(m.Output) // what comes for it waits for its turn
		slots[cli.AgentSessionID(m.Note)] = s
		if m.Turn != turn {
			awaited[m.Turn] = s
		}
	}
	until := left.OutputEnd
	h := newHub(left.Setting, process, p.opts.Grace, from, slots, &until)
	h.former, h.busy = true, busy
	h.spoiled = slices.ContainsFunc(left.Marks, func(m cli.Mark) bool { return m.Turn == cli.SpoilMark })
	p.hubs.add(h)
	p.hubs.mu.Lock()
	defer p.hubs.mu.Unlock()
	p.hubs.left = append(p.hubs.left, h)
	if h.awaited = awaited; len(awaited) > 0 {
		h.users++
		time.AfterFunc(adoptWait, func() { p.giveUp(h) })
	}
	return h, nil
}

// attached is the process of a run that was attached to, held for a turn. It may be dead: what it said before
// is there all the same.
func (hs *hubs) attached(run cli.RunID, turn cli.TurnID) *hub {
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

// giveUp gives the process back in the name of the turns that nobody asked for in time.
func (p *Provider) giveUp(h *hub) {
	p.hubs.mu.Lock()
	awaited := h.awaited
	h.awaited = nil
	p.hubs.mu.Unlock()
	if len(awaited) == 0 {
		return
	}
	for _, s := range awaited {
		s.end()
	}
	if err := p.giveBack(context.Background(), h, false); err != nil {
		p.opts.Logger.Error("a copilot that nobody goes on with did not end", "pid", h.process.PID(), "err", err)
	}
}
