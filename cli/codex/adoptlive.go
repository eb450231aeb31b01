package codex

import (
	"context"
	"encoding/json"
	"time"

	"ductor/cli"
)

// awaitedTurn is a turn of a run that was attached to, from the moment of attaching until it is gone on with.
type awaitedTurn struct {
	mark   cli.Mark
	note   note
	in     *inbox
	unsent bool // its prompt never reached Codex
	taken  bool
}

// adoptWait is how long an attached process is kept for turns that nobody asks for.
const adoptWait = time.Minute

// adoptLive makes a session of a turn in an app server that an earlier ductor left. The process is attached to
// once, with the first of its turns.
func (p *Provider) adoptLive(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "an idle process of several conversations is kept, and not adopted")
	}
	h, err := p.attach(ctx, left)
	if err != nil {
		return nil, cli.AsFailure(Agent, err)
	}
	w := p.claim(h, req.Turn)
	if w == nil {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "nothing is left of this turn")
	}
	return &live{
		provider: p, hub: h, chat: w.note.Chat, marker: w.note.Marker, thread: w.note.Thread, model: w.note.Model, left: w,
	}, nil
}

// attach gives the hub of a run.
func (p *Provider) attach(ctx context.Context, left cli.LeftRun) (*hub, error) {
	p.mu.Lock()
	h := p.attached[left.Run]
	if h == nil {
		h = &hub{provider: p, setting: left.Setting, left: &left, ready: make(chan struct{})}
		p.attached[left.Run] = h
		p.mu.Unlock()
		h.err = p.attachHub(ctx, h)
		if h.err != nil {
			p.mu.Lock()
			delete(p.attached, left.Run)
			p.mu.Unlock()
		}
		close(h.ready)
		return h, h.err
	}
	p.mu.Unlock()
	select {
	case <-h.ready:
		return h, h.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// attachHub attaches at the oldest turn and has the messages of each kept for who goes on with it.
func (p *Provider) attachHub(ctx context.Context, h *hub) error {
	from := h.left.OutputEnd
	for _, m := range h.left.Marks {
		from = min(from, m.Output)
	}
	process, err := p.opts.Launcher.Attach(ctx, h.left.Run, from)
	if err != nil {
		return cli.StartFailure(Agent, err)
	}
	p.connect(h, process, from, h.left)
	for _, m := range h.left.Marks {
		w := &awaitedTurn{mark: m, in: newInbox(), unsent: h.left.InputEnd == m.Input}
		if json.Unmarshal([]byte(m.Note), &w.note) != nil || w.note.Thread == "" {
			continue
		}
		h.await = append(h.await, w)
		h.busy, h.version = h.busy+1, w.note.Version
		h.attend(w.note.Thread, w.in) // of two turns of a thread the later one is the open one
		_ = h.conn.expect(startName(m.Turn), func(m message) { w.in.put(news{message: m}) })
	}
	p.mu.Lock()
	h.users = len(h.await)
	if old := p.hubs[h.setting]; old == nil {
		p.hubs[h.setting] = h // conversations that are idle in it go on in it
	}
	p.mu.Unlock()
	h.listen()
	time.AfterFunc(adoptWait, func() { p.giveUp(h) })
	return nil
}

// claim takes out the turn that is gone on with.
func (p *Provider) claim(h *hub, turn cli.TurnID) *awaitedTurn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range h.await {
		if w.mark.Turn == turn && !w.taken {
			w.taken = true
			return w
		}
	}
	return nil
}

// forsake leaves the hub in the name of the turns that nobody asked for, and says whether nobody is left then.
func (p *Provider) forsake(h *hub) (last bool) {
	for _, w := range h.await {
		if p.claim(h, w.mark.Turn) != nil {
			h.ignore(w.note.Thread, w.in)
			w.in.close()
			last = p.leave(h) || last
		}
	}
	return last
}

// giveUp ends what nobody asked for in time.
func (p *Provider) giveUp(h *hub) {
	if !p.forsake(h) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Grace+stopWait)
	defer cancel()
	if err := h.kill(ctx); err != nil {
		p.opts.Logger.Error("an agent that nobody goes on with did not end", "agent", string(Agent), "pid", h.process.PID(), "err", err)
	}
}
