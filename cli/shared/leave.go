package shared

import (
	"context"
	"time"
)

// Leaving is the way a session leaves its process.
type Leaving string

// The ways to leave.
const (
	Closed   Leaving = "closed"
	Unused   Leaving = "unused"   // it has nothing to save
	Broken   Leaving = "broken"   // its child processes may still run: the process takes no further session
	Detaches Leaving = "detaches" // its turn continues without ductor, and so does the process
)

// Leave removes a session from the process. If it was the last session, Leave ends the process with everything it
// started, or detaches from it.
func (p *Process) Leave(ctx context.Context, how Leaving) error {
	last, state := p.leave(how)
	switch {
	case !last:
		return nil
	case state == Detached && p.err == nil: // otherwise prepare has detached from it
		p.detach()
		return nil
	case how == Closed && (state == Ready || state == Attached || state == Draining):
		p.goodbye(ctx)
	}
	return p.Stop(ctx, p.pool.opts.Grace)
}

// leave removes a session. It reports whether that was the last session, and the state that the process had then.
func (p *Process) leave(how Leaving) (last bool, state State) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.use.sessions--
	switch how {
	case Broken:
		p.drain()
	case Detaches:
		if p.use.state != Dead {
			p.become(Detached)
		}
		p.use.sessions -= len(p.use.awaited) // no request can resume them in this process any more
		clear(p.use.awaited)
	}
	last, state = p.use.sessions <= 0, p.use.state
	if last {
		p.drain()
		if p.pool.attached[p.run] == p {
			delete(p.pool.attached, p.run)
		}
	}
	return last, state
}

// goodbye closes the input of an idle process, and gives it a moment to end.
func (p *Process) goodbye(ctx context.Context) {
	if p.pool.opts.Goodbye == 0 {
		return
	}
	p.peer.CloseInput()
	wait := time.NewTimer(p.pool.opts.Goodbye)
	defer wait.Stop()
	select {
	case <-p.prog.Done():
	case <-wait.C:
	case <-ctx.Done():
	}
}
