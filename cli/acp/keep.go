package acp

import (
	"context"
	"encoding/json"
	"errors"

	"ductor/cli"
	"ductor/cli/rpc"
)

var _ cli.Keeper = (*Provider)(nil)

// errNotKept says that Keep did not take an orphan process: another one may be started.
var errNotKept = errors.New("the process that was left is not kept")

// Keep takes over a process in which no turn runs. It is not greeted again, for the protocol has that done once: what it
// said of itself is in its note. Its sessions are loaded when a turn resumes them. Keep takes no agent of which
// Options.Version says nothing.
func (p *Provider) Keep(ctx context.Context, left cli.LeftRun) (cli.Kept, error) {
	agent := p.opts.Agent
	raw, rests := left.Rested()
	var note idleNote
	switch {
	case !rests || json.Unmarshal([]byte(raw), &note) != nil || note.Hello.ProtocolVersion != protocolVersion:
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, agent, "it is unknown what runs in it")
	case p.opts.Version == nil:
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, agent, "it is unknown which version of it is installed")
	}
	proc := p.reserve(left.Setting)
	if proc == nil {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, agent, "another one took its place")
	}
	proc.inherit(ctx, left, note.Hello)
	if proc.failed != nil {
		return cli.Kept{}, proc.failed
	}
	return cli.Kept{
		PID: proc.run.PID(), Alive: proc.alive,
		Close:  func(ctx context.Context) error { return proc.leave(ctx, release{}) },
		Detach: func() { _ = proc.leave(context.Background(), release{detached: true}) }, // detaching has no error
	}, nil
}

// reserve makes the agentProcess of a process that is to be kept, with one user; nil if there is another one.
func (p *Provider) reserve(key string) *agentProcess {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.processes[key] != nil {
		return nil
	}
	proc := newProcess(p, key)
	p.processes[key] = proc
	return proc
}

// inherit attaches at the end of what the process said.
func (proc *agentProcess) inherit(ctx context.Context, left cli.LeftRun, hello initialized) {
	defer close(proc.ready)
	o := proc.provider.opts
	fail := func(f *cli.Failure) {
		f.Cause = errors.Join(errNotKept, f.Cause)
		proc.failed = f
		proc.setUnusable()
		proc.end()
	}
	if now := o.Version(ctx); now != hello.AgentInfo.Version {
		fail(cli.Failf(cli.UnknownFailure, o.Agent, "it is version %s, and %q is installed", hello.AgentInfo.Version, now))
		return
	}
	process, err := o.Launcher.Attach(ctx, left.Run, left.OutputEnd)
	if err != nil {
		fail(cli.AsFailure(o.Agent, err))
		return
	}
	proc.hello, proc.caps, proc.quirks = hello, hello.Capabilities, o.Quirks.of(hello.AgentInfo.Name)
	proc.talk(process, rpc.Options{From: left.OutputEnd})
	proc.peer.Listen()
}
