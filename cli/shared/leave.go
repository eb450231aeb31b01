package shared

import (
	"context"
	"time"
)

// Leaving describes how a session leaves its process.
type Leaving string

// Leaving values.
const (
	Closed   Leaving = "closed"
	Unused   Leaving = "unused"   // the session was not used
	Broken   Leaving = "broken"   // child processes of the session may still run, so no further session may join
	Detaches Leaving = "detaches" // the turn continues without ductor, and so does the process
)

// Leave removes a session from the process. After the last session, Leave ends the process with its descendants, or
// detaches from the process.
func (p *Process) Leave(ctx context.Context, how Leaving) error {
	last, state := p.leave(how)
	switch {
	case !last:
		return nil
	case state == Detached && p.err == nil: // otherwise prepare has already detached
		p.detach()
		return nil
	case how == Closed && (state == Ready || state == Attached || state == Draining):
		p.goodbye(ctx)
	}
	return p.Stop(ctx, p.pool.opts.Grace)
}

// leave removes a session. It returns whether that was the last session, and the state of the process.
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

// goodbye closes the input of an idle process, and waits a moment for the process to end.
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
