package codex

import (
	"context"
	"encoding/json"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// awaitedTurn is a turn of a run that was attached to, from the moment of attaching until it is resumed.
type awaitedTurn struct {
	mark   cli.Mark
	note   note
	in     *inbox
	unsent bool // its prompt never reached Codex
	taken  bool
}

// adoptWait is how long an attached process is kept for turns that no request resumes.
const adoptWait = time.Minute

// adoptLive makes a session of a turn in an app server that the previous process left. The process is attached to
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
		provider: p, server: h, chat: w.note.Chat, marker: w.note.Marker, thread: w.note.Thread, model: w.note.Model, left: w,
	}, nil
}

// attach gives the server of a run.
func (p *Provider) attach(ctx context.Context, left cli.LeftRun) (*server, error) {
	p.mu.Lock()
	h := p.attached[left.Run]
	if h == nil {
		h = &server{provider: p, setting: left.Setting, left: &left, ready: make(chan struct{})}
		p.attached[left.Run] = h
		p.mu.Unlock()
		h.err = p.attachServer(ctx, h)
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

// attachServer attaches at the oldest turn and has the messages of each kept for the session that resumes it.
func (p *Provider) attachServer(ctx context.Context, h *server) error {
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
		_ = h.peer.Expect(startName(m.Turn), func(m rpc.Message) { w.in.put(news{Message: m}) })
	}
	p.mu.Lock()
	h.users = len(h.await)
	if old := p.servers[h.setting]; old == nil {
		p.servers[h.setting] = h // conversations that are idle in it go on in it
	}
	p.mu.Unlock()
	h.peer.Listen()
	time.AfterFunc(adoptWait, func() { p.giveUp(h) })
	return nil
}

// claim takes out the turn that is resumed.
func (p *Provider) claim(h *server, turn cli.TurnID) *awaitedTurn {
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

// expire leaves the server for the turns that no request resumed, and says whether they were its last users.
func (p *Provider) expire(h *server) (last bool) {
	for _, w := range h.await {
		if p.claim(h, w.mark.Turn) != nil {
			h.ignore(w.note.Thread, w.in)
			w.in.close()
			last = p.leave(h) || last
		}
	}
	return last
}

// giveUp ends the turns that no request resumed in time.
func (p *Provider) giveUp(h *server) {
	if !p.expire(h) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.Grace+stopWait)
	defer cancel()
	if err := h.kill(ctx); err != nil {
		p.opts.Logger.Error("an agent whose turns were not resumed did not end", "agent", string(Agent), "pid", h.process.PID(), "err", err)
	}
}
