package acp

import (
	"context"
	"encoding/json"
	"time"

	"ductor/cli"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// cut asks the agent to end the turn.
func (t *liveTurn) cut(why turn.End) {
	if t.cutBy != "" {
		return
	}
	t.cutBy, t.cutAt, t.reacted = why, time.Now(), false
	proc := t.s.process
	err := proc.Peer().Notify(methodCancel, sessionParams{SessionID: string(t.s.id)})
	// An agent that waits for permission ends the turn only when that is answered, too.
	for _, a := range append(t.s.withdraw(func(*ask) bool { return true }), t.open...) {
		proc.respond(a.id, cancelled())
	}
	if err != nil {
		t.stop()
		return
	}
	t.timer.Reset(turn.ReactWait(t.ctx, interruptWait, t.s.process.opts.Grace))
}

// limit is how long the agent may be silent now.
func (t *liveTurn) limit() time.Duration {
	if t.out.OpenTools() > 0 || t.waiting() {
		return t.s.process.opts.ToolStall
	}
	return t.s.process.opts.Stall
}

// waiting says whether the agent waits for a user.
func (t *liveTurn) waiting() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return len(t.s.turn.asks) > 0
}

// tick does what is due, and sets the timer to what is due next.
func (t *liveTurn) tick() {
	if t.cutBy != "" {
		limit := t.cutAt.Add(turn.CutWait(t.ctx, t.s.process.opts.Grace))
		if !t.reacted || !time.Now().Before(limit) {
			t.stop()
			return
		}
		t.timer.Reset(time.Until(limit))
		return
	}
	if t.waiting() { // for as long as a user takes
		t.quiet = time.Now()
	}
	limit, silence := t.limit(), time.Since(t.quiet)
	if silence >= limit {
		t.silence = silence
		t.cut(turn.EndStalled)
		return
	}
	t.timer.Reset(min(limit-silence, t.s.process.opts.Stall)) // a tool that ends shortens the limit
}

// stop ends an agent that did not end the turn when it was asked to. One that serves others is left to them, and
// ended with the last of them.
func (t *liveTurn) stop() {
	proc := t.s.process
	if !proc.Drain() {
		t.gone = true
		return
	}
	grace := max(t.s.process.opts.Grace-time.Since(t.cutAt), 0)
	if err := proc.Stop(context.WithoutCancel(t.ctx), grace); err != nil {
		t.s.process.opts.Logger.Error("an agent did not end", "agent", string(t.s.process.opts.Agent), "err", err)
	}
	t.takeAll() // its last words
	t.gone = true
}

// finish emits the result.
func (t *liveTurn) finish() {
	s := t.s
	s.process.Peer().Forget(s.promptID(t.req.Turn))
	replaced := t.replaced()
	rest := s.stopListening(t.after(replaced))
	for _, i := range rest {
		s.late(i)
	}
	r := t.result()
	t.reporter.release()
	if t.replaying && !t.detached { // it ended in the past
		t.replaying = false
		t.out.Pass(cli.CaughtUp{})
	}
	if t.reporter.mode != "" {
		s.mu.Lock()
		s.offers.mode = t.reporter.mode
		s.mu.Unlock()
	}
	r.Denials = t.reporter.denials
	t.out.Finish(r)
	s.process.TurnEnded(t.ctx, t.leaves(replaced))
}

// after is what becomes of the session. What is offered in one that was adopted is not known.
func (t *liveTurn) after(replaced bool) phase {
	switch {
	case t.detached:
		return phaseLeft
	case t.reply != nil && t.answered == nil && (t.cutBy == "" || replaced):
		return phaseIdle
	}
	return phaseBroken
}

// leaves says what the turn leaves in its process. The protocol has no environment for a session, by which what its tools
// started could be told from what those of others did. So a process in which a turn was aborted that ran tools does not
// outlive its turns; their ids resume its sessions in another.
func (t *liveTurn) leaves(replaced bool) shared.TurnEnd {
	over := t.reply != nil || t.sendErr != nil
	switch {
	case t.detached:
		return shared.EndDetached
	case t.cutBy != "" && !replaced && (t.reporter.ran || !over):
		return shared.EndLeftovers
	}
	return shared.EndOver
}

// replaced says whether the agent ended the turn for the user's next message, and its session can go on. It cannot where
// a tool ran: the tool may run on, and Gemini's model refuses what is said after a call that has no result.
func (t *liveTurn) replaced() bool {
	return cli.Replaced(t.ctx) && t.reply != nil && t.out.OpenTools() == 0
}

// stopListening ends what listen began, and returns the items that no turn took.
func (s *session) stopListening(to phase) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == phaseRunning {
		s.phase = to
	}
	s.turn = turnState{}
	rest, _ := s.inbox.Take()
	return rest
}

// result is how the turn ended: by the agent's own word, unless we cut it short.
func (t *liveTurn) result() cli.Result {
	agent := t.s.process.opts.Agent
	switch {
	case t.detached:
		return cli.Result{Detached: true}
	case t.reply != nil:
		r := t.replied()
		if t.cutBy != "" && (r.Err != nil || t.reply.Error != nil) {
			return t.cutResult(r)
		}
		return r
	case t.cutBy != "":
		return t.cutResult(cli.Result{})
	case t.sendErr != nil:
		return cli.Result{Err: &cli.Failure{Kind: cli.Crashed, Agent: agent, Reason: "it did not take the message", Cause: t.sendErr}}
	case t.overflow:
		return cli.Result{Err: cli.Failf(cli.BadOutput, agent, "it says more than can be kept")}
	}
	return cli.Result{Err: t.s.process.Failure()}
}

func (t *liveTurn) cutResult(said cli.Result) cli.Result {
	r := cli.Cut(t.ctx, t.s.process.opts.Agent)
	if t.cutBy == turn.EndStalled {
		r = cli.Stalled(t.s.process.opts.Agent, t.silence)
	}
	r.Usage, r.ByModel = said.Usage, said.ByModel
	return r
}

// replied is the result that the agent's answer to the prompt says.
func (t *liveTurn) replied() cli.Result {
	agent := t.s.process.opts.Agent
	if t.reply.Error != nil {
		return cli.Result{Err: t.s.process.opts.refusal(t.reply.Error)}
	}
	var p prompted
	if err := json.Unmarshal(t.reply.Result, &p); err != nil || p.StopReason == "" {
		f := cli.Failf(cli.BadOutput, agent, "the end of the turn cannot be read")
		f.Detail = cli.Shorten(string(t.reply.Result), 1000)
		return cli.Result{Err: f}
	}
	r := t.s.counted(p)
	switch p.StopReason {
	case "end_turn":
		if text, ok := t.reporter.failed(r.Usage); ok {
			r.Err = t.s.process.opts.meaning(errorCode(text), text)
		}
	case "cancelled":
		r.Err = cli.Failf(cli.UnknownFailure, agent, "it cancelled the turn, and no user asked for that")
	case "max_tokens":
		r.Err = cli.Failf(cli.LimitOfTurn, agent, "the answer became too long")
	case "max_turn_requests":
		r.Err = cli.Failf(cli.LimitOfTurn, agent, "it asked its model too many times")
	case "refusal":
		r.Err = cli.Failf(cli.Refused, agent, "the model refuses to go on")
	default:
		r.Err = cli.Failf(cli.UnknownFailure, agent, "it stopped: %s", cli.ShortLine(p.StopReason))
	}
	return r
}

// counted is what a turn used, as far as the agent says.
func (s *session) counted(p prompted) cli.Result {
	var r cli.Result
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.Usage != nil:
		u := p.Usage
		r.Usage = cli.Usage{Input: max(u.Input-u.CacheRead, 0), Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Thought}
	case p.Meta.Quota != nil:
		q := p.Meta.Quota
		r.Usage = q.usage()
		for _, m := range q.Models {
			if r.ByModel == nil {
				r.ByModel = map[cli.ModelID]cli.Usage{}
			}
			r.ByModel[cli.ModelID(m.Model)] = m.usage()
		}
	}
	if s.process.quirks.TotalUsage && p.Usage != nil {
		total := r.Usage
		r.Usage = total.Sub(s.totals)
		s.totals = total
	}
	return r
}
