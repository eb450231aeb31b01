package acp

import "context"

// The protocol has no environment for a session, by which what its tools started could be separated from what those of
// others did. So a process in which a turn was aborted that ran tools is ended: at once when no turn runs in it, else
// with the last of them. Their ids resume its sessions in another process.

func (proc *agentProcess) loopStarted() {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	proc.turns++
}

// loopEnded counts a turn out that emitted its Result; aborted says that what it started may still run. It returns
// when that is dead, unless other turns run.
func (proc *agentProcess) loopEnded(ctx context.Context, aborted bool) {
	proc.mu.Lock()
	proc.turns--
	proc.ending = proc.ending || aborted
	ending, end := proc.ending, proc.ending && proc.turns == 0 && !proc.detached
	proc.mu.Unlock()
	if ending {
		proc.setUnusable()
	}
	if !end {
		return
	}
	o := proc.provider.opts
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Grace+stopSlack)
	defer cancel()
	if err := proc.run.Stop(ctx, o.Grace); err != nil {
		o.Logger.Error("an agent with what an aborted turn started did not end", "agent", string(o.Agent), "err", err)
	}
}
