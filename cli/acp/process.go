package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

const (
	// leaveWait is how long an idle process may take to end after its input ends.
	leaveWait = 300 * time.Millisecond
	stopSlack = 10 * time.Second // what stopping may take beyond the grace
)

// agentProcess is one process of the agent and the sessions in it. It lives as long as a session is in it. Safe for
// concurrent use.
type agentProcess struct {
	provider *Provider
	key      string

	ready chan struct{} // closed when it is started, or failed to
	life  context.Context
	end   context.CancelFunc // of starting, and of what is served

	// Valid once ready is closed.
	failed *cli.Failure
	run    cli.Process
	peer   *rpc.Peer
	caps   agentCapabilities
	hello  initialized
	quirks Quirks // those of Options, and of an agent that is known to have some

	serving sync.WaitGroup // what is served for the agent

	mu        sync.Mutex
	refs      int
	sessions  map[string]*session
	unclaimed map[string]*session // of a run that was attached to: those that no turn resumed yet
	unusable  bool                // takes no further session
	turns     int                 // that run
	busy      int                 // turns that run, or of which something may be left
	ending    bool                // it ends with the last turn, because what an aborted turn started may run in it
	detached  bool                // continues without us
	served    int                 // requests of the agent that are worked on
}

// newProcess makes an agentProcess with one session in it.
func newProcess(p *Provider, key string) *agentProcess {
	proc := &agentProcess{
		provider: p, key: key, refs: 1, quirks: p.opts.Quirks,
		ready: make(chan struct{}), sessions: map[string]*session{},
	}
	proc.life, proc.end = context.WithCancel(context.Background())
	return proc
}

// start starts the process and shakes hands with it.
func (proc *agentProcess) start(cmd cli.Command) {
	defer close(proc.ready)
	o := proc.provider.opts
	ctx, cancel := context.WithTimeout(proc.life, o.StartLimit)
	defer cancel()
	process, err := o.Launcher.Start(ctx, cmd)
	if err != nil {
		proc.failed = cli.StartFailure(proc.provider.opts.Agent, err)
		return
	}
	proc.talk(process, rpc.Options{})
	proc.peer.Listen()
	hello := initializeParams{
		ProtocolVersion: protocolVersion, ClientInfo: clientInfo{"ductor", "ductor", "1"},
		ClientCapabilities: capabilities{FS: fsCapabilities{!o.NoFiles, !o.NoFiles}, Terminal: !o.NoTerminals},
	}
	if err := proc.call(ctx, methodInitialize, hello, &proc.hello); err != nil {
		proc.failed = proc.notSpoken(err)
		return
	}
	if proc.hello.ProtocolVersion != protocolVersion {
		proc.failed = cli.Failf(cli.BadOutput, o.Agent, "it speaks version %d of the protocol, and ductor version %d",
			proc.hello.ProtocolVersion, protocolVersion)
	}
	proc.caps, proc.quirks = proc.hello.Capabilities, o.Quirks.of(proc.hello.AgentInfo.Name)
}

// notSpoken is the failure of a program that did not answer the first request.
func (proc *agentProcess) notSpoken(err error) *cli.Failure {
	f := proc.provider.failure(err)
	if f.Kind == cli.TimedOut {
		f = cli.Failf(cli.BadOutput, proc.provider.opts.Agent, "it did not answer when it was spoken to; its version may be too old")
		f.Cause = err
	}
	return f
}

// join counts one more session in; false if the process takes none.
func (proc *agentProcess) join() bool {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	if proc.unusable || proc.detached || proc.refs == 0 {
		return false
	}
	proc.refs++
	return true
}

// alone says whether there is one session only.
func (proc *agentProcess) alone() bool {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	return proc.refs <= 1
}

// setUnusable keeps further sessions out.
func (proc *agentProcess) setUnusable() {
	proc.mu.Lock()
	proc.unusable = true
	proc.mu.Unlock()
	proc.provider.retire(proc)
}

// release is how a session leaves.
type release struct {
	unusable bool // what it started may still run: the process takes no further session, and is not waited for
	detached bool // its turn continues without us, and so does the process
}

// leave counts a session out. The last one ends the process with everything it started, or detaches from it.
func (proc *agentProcess) leave(ctx context.Context, p release) error {
	proc.mu.Lock()
	proc.refs--
	last := proc.refs == 0
	proc.unusable = proc.unusable || p.unusable || last
	proc.detached = proc.detached || p.detached
	retire, detached, unusable := proc.unusable || proc.detached, proc.detached, p.unusable
	proc.mu.Unlock()
	if retire {
		proc.provider.retire(proc)
	}
	switch {
	case !last:
		return nil
	case detached:
		proc.detach()
		return nil
	case unusable:
		return proc.close(ctx)
	}
	proc.closeInput(ctx)
	return proc.close(ctx)
}

// closeInput closes the input of an idle process, and waits a moment for the process to end.
func (proc *agentProcess) closeInput(ctx context.Context) {
	select {
	case <-proc.ready:
	default:
		return
	}
	if proc.failed != nil || proc.peer == nil {
		return
	}
	proc.peer.CloseInput()
	wait := time.NewTimer(leaveWait)
	defer wait.Stop()
	select {
	case <-proc.run.Done():
	case <-wait.C:
	case <-ctx.Done():
	}
}

// close ends the process and everything it started, and waits for what reads and writes it.
func (proc *agentProcess) close(ctx context.Context) error {
	proc.end()
	ctx, cancel := context.WithTimeout(ctx, proc.provider.opts.Grace+stopSlack)
	defer cancel()
	select {
	case <-proc.ready: // soon, since life ended
	case <-ctx.Done():
		return fmt.Errorf("close %s: %w", proc.provider.opts.Agent, context.Cause(ctx))
	}
	if proc.peer == nil {
		return nil
	}
	return errors.Join(proc.peer.Stop(ctx, proc.provider.opts.Grace), proc.await(ctx))
}

// await waits for what is served for the agent.
func (proc *agentProcess) await(ctx context.Context) error {
	served := make(chan struct{})
	go func() { proc.serving.Wait(); close(served) }()
	select {
	case <-served:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close %s: %w", proc.provider.opts.Agent, context.Cause(ctx))
	}
}

// detach leaves the process running, and waits for the goroutines of proc.
func (proc *agentProcess) detach() {
	select {
	case <-proc.ready:
	default:
		proc.end() // nothing is to be written
	}
	<-proc.ready
	var err error
	if proc.peer != nil {
		err = proc.peer.Detach()
	}
	proc.end()
	ctx, cancel := context.WithTimeout(context.Background(), stopSlack)
	defer cancel()
	if err := errors.Join(err, proc.await(ctx)); err != nil {
		proc.provider.opts.Logger.Error("detach from an agent", "agent", string(proc.provider.opts.Agent), "err", err)
	}
}

// alive says whether the process can take another turn.
func (proc *agentProcess) alive() bool {
	select {
	case <-proc.peer.Ended():
		return false
	case <-proc.run.Done():
		return false
	default:
	}
	proc.mu.Lock()
	defer proc.mu.Unlock()
	return !proc.unusable && !proc.detached
}
