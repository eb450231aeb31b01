package shared

import (
	"context"
	"time"
)

// Leaving describes why a session leaves its process.
type Leaving string

// Values of Leaving.
const (
	Closed   Leaving = "closed"
	Unused   Leaving = "unused"   // the session had no turn
	Broken   Leaving = "broken"   // no session may join; child processes of the leaving session may still run
	Detaches Leaving = "detaches" // ductor detaches from the turn, which continues in the process
)

// Leave removes a session from the process. If the process has no other session, Leave ends the process with its
// descendants, or detaches from it.
func (p *Process) Leave(ctx context.Context, how Leaving) error {
	last, state := p.leave(how)
	switch {
	case !last:
		return nil
	case state == Detached && p.err == nil: // after an error, prepare has already detached
		p.detach()
		return nil
	case how == Closed && (state == Ready || state == Attached || state == Draining):
		p.goodbye(ctx)
	}
	return p.Stop(ctx, p.pool.opts.Grace)
}

// leave removes a session from the count. It reports whether this was the last session, and returns the state of the
// process.
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
		p.use.sessions -= len(p.use.awaited) // ductor is ending, so no request will resume the awaited turns
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
