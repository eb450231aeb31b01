package codex

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// interrupt asks Codex to end the turn, whose Result will be r.
func (t *liveTurn) interrupt(r cli.Result) {
	if !t.cut.IsZero() {
		return
	}
	t.cut, t.why = time.Now(), r
	t.timer.Reset(turn.CutWait(t.ctx, t.s.provider.opts.Grace))
	if !t.sent { // it never began: nothing is to be ended
		t.timer.Reset(0)
		return
	}
	if t.settled {
		t.sendInterrupt()
	}
}

func (t *liveTurn) sendInterrupt() {
	if t.asked {
		return
	}
	t.asked = true
	params := map[string]any{"threadId": t.s.thread, "turnId": t.id}
	if t.s.server.Peer().Send(rpc.Request{Method: "turn/interrupt", Params: params}) != nil { // the answer is the end of the turn
		t.timer.Reset(0)
	}
}

// deaf ends the process, since the turn did not end when it was asked to. The turns of others in the process
// end with it: a process that does not answer is of no use to them either.
func (t *liveTurn) deaf() cli.Result {
	if t.sent {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.s.provider.opts.Grace+stopWait)
		defer cancel()
		if err := t.s.server.Stop(ctx, t.s.provider.opts.Grace); err != nil {
			t.s.provider.opts.Logger.Error("a codex that does not answer did not end", "pid", t.s.server.Program().PID(), "err", err)
		}
	}
	return t.why
}

// result is the Result of a turn that ended by Codex's own word.
func (t *liveTurn) result() cli.Result {
	if !t.cut.IsZero() && t.parser.status != turnCompleted {
		return t.why
	}
	return t.parser.result()
}

// crashed is the Result of a turn whose process has gone.
func (t *liveTurn) crashed() cli.Result {
	if !t.cut.IsZero() {
		return t.why
	}
	return cli.Result{Err: t.s.server.exit()}
}

// sessionGoesOn says whether Codex ended the turn for the user's next message, and nothing of the turn runs on. Codex leaves
// a running command alone, so sessionGoesOn ends it.
func (t *liveTurn) sessionGoesOn() bool {
	if t.cut.IsZero() || !cli.Replaced(t.ctx) || t.parser.status == "" {
		return false
	}
	if t.out.OpenTools() == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.s.provider.opts.Grace+stopWait)
	defer cancel()
	err := t.s.endTools(ctx)
	if err != nil {
		t.s.provider.opts.Logger.Warn("end what an interrupted turn runs", "agent", string(Agent), "thread", string(t.s.thread), "err", err)
	}
	return err == nil
}
