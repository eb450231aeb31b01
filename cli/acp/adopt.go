package acp

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// claimWait is how long the turns of an attached run may wait for Adopt. After it the run no longer lives for
// their sake.
const claimWait = time.Minute

// adopted is a turn that the previous process began.
type adopted struct {
	mark  cli.Mark
	note  note
	fails *cli.Failure // why it cannot be resumed
	send  bool         // its prompt has not reached the agent
}

// Adopt resumes a turn that the previous process began; see cli.Provider. Keep, not Adopt, takes an idle process: it serves
// several conversations, and nothing records which ones. A session from Adopt takes no further turn.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	agent := p.opts.Agent
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, agent, "an idle process of several conversations cannot be resumed")
	}
	mark, n, ok := markOf(left, req.Turn)
	if !ok {
		return nil, cli.Failf(cli.UnknownFailure, agent, "what is left of it does not say where the turn began")
	}
	proc := p.attach(left)
	select {
	case <-proc.ready:
	case <-ctx.Done():
		return nil, cli.AsFailure(agent, context.Cause(ctx))
	}
	s := proc.claim(n.Session)
	if s == nil {
		return nil, cli.Failf(cli.UnknownFailure, agent, "the turn was resumed already")
	}
	s.settings, s.workspace = p.settingsOf(req), newWorkspace(proc, req)
	s.adopted = adoption(left, mark, n, agent)
	if proc.failed != nil {
		f := proc.failed
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
func (p *Provider) attach(left cli.LeftRun) *agentProcess {
	p.mu.Lock()
	defer p.mu.Unlock()
	if proc := p.left[left.Run]; proc != nil {
		return proc
	}
	proc := newProcess(p, left.Setting)
	proc.unusable, proc.refs, proc.unclaimed = true, 0, map[string]*session{}
	from := int64(math.MaxInt64)
	for _, m := range left.Marks {
		n, ok := readNote(m)
		if !ok {
			continue
		}
		from = min(from, m.Output)
		proc.quirks = p.opts.Quirks.of(n.Name)
		proc.foreignSession(n)
	}
	p.left[left.Run] = proc
	go proc.takeOver(left, from)
	time.AfterFunc(claimWait, proc.expire)
	return proc
}

// foreignSession is the session of a mark, made if it is not there. Only attach has proc at this point.
func (proc *agentProcess) foreignSession(n note) {
	s := proc.sessions[n.Session]
	if s == nil {
		s = &session{
			process: proc, provider: proc.provider, id: cli.AgentSessionID(n.Session), inbox: newInbox(),
			asks: map[cli.AskID]*ask{}, heard: make(chan struct{}, 1), offered: make(chan struct{}),
			listening: true, unusable: true, foreign: true,
		}
		proc.sessions[n.Session], proc.unclaimed[n.Session] = s, s
		proc.refs++
	}
	s.model, s.totals = n.Model, n.Totals
}

func (proc *agentProcess) takeOver(left cli.LeftRun, from int64) {
	defer close(proc.ready)
	ctx, cancel := context.WithTimeout(proc.life, proc.provider.opts.StartLimit)
	defer cancel()
	process, err := proc.provider.opts.Launcher.Attach(ctx, left.Run, from)
	if err != nil {
		proc.failed = cli.Failf(cli.UnknownFailure, proc.provider.opts.Agent, "what is left of the turn cannot be read")
		proc.failed.Cause = err
		return
	}
	proc.talk(process, rpc.Options{From: from, Past: true, Until: left.OutputEnd})
	proc.mu.Lock()
	for _, m := range left.Marks {
		if n, ok := readNote(m); ok && proc.sessions[n.Session] != nil {
			_ = proc.sessions[n.Session].expect(m.Turn) // fails only of too many turns
		}
	}
	proc.mu.Unlock()
	proc.peer.Listen()
}

// claim gives a session to the turn that resumes it; nil if another turn has it.
func (proc *agentProcess) claim(id string) *session {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	s := proc.unclaimed[id]
	delete(proc.unclaimed, id)
	return s
}

// expire gives up the sessions that no turn claimed.
func (proc *agentProcess) expire() {
	proc.mu.Lock()
	expired := len(proc.unclaimed)
	clear(proc.unclaimed)
	proc.mu.Unlock()
	for range expired {
		if err := proc.leave(context.Background(), release{unusable: true}); err != nil {
			proc.provider.opts.Logger.Error("end a run that was left", "agent", string(proc.provider.opts.Agent), "err", err)
		}
	}
}

// resume takes an adopted turn to its end.
func (s *session) resume(ctx context.Context, req cli.Request, out *cli.Emitter) {
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
		s.stopListening(false, false)
		out.Finish(cli.Result{Err: a.fails})
		return
	case a.send:
		t.send = func() error { return s.askNow(req) }
	}
	t.run()
}

// askNow sends a prompt that the previous process did not send.
func (s *session) askNow(req cli.Request) error {
	blocks, err := s.blocks(req)
	if err != nil {
		return err
	}
	s.mu.Lock()
	n := s.note
	s.mu.Unlock()
	s.ask(req, blocks, n)
	return nil
}

// clock is the time of the event at hand: a past one while the output is replayed.
func (t *turn) clock() time.Time {
	if t.replaying {
		if at := t.s.process.run.When(max(t.at-1, 0)); !at.IsZero() {
			return at
		}
	}
	return t.s.provider.opts.Now()
}

// caughtUp ends the replay, and asks each question again that has no answer yet.
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
