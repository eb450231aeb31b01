package acp

import (
	"cmp"
	"context"
	"sync/atomic"

	"ductor/cli"
	"ductor/cli/shared"
)

// Provider is one agent. Safe for concurrent use.
type Provider struct {
	opts Options

	pool *shared.Pool[*agentProcess]
	// offered are the modes of the session that was opened last; nil before the first.
	offered atomic.Pointer[[]string]
	// late says that the agent was seen to speak after the reply that ends a turn.
	late atomic.Bool
}

var (
	_ cli.Provider = (*Provider)(nil)
	_ cli.Limited  = (*Provider)(nil)
	_ cli.Sharer   = (*Provider)(nil)
)

// New makes a Provider. It starts nothing.
func New(o Options) *Provider {
	o.ProviderOptions = o.OrDefault(o.Path)
	o.StartLimit = cmp.Or(o.StartLimit, shared.DefaultStartLimit)
	o.CallLimit = cmp.Or(o.CallLimit, DefaultCallLimit)
	p := &Provider{opts: o}
	p.pool = shared.NewPool(shared.Options{
		ProviderOptions: o.ProviderOptions, Agent: o.Agent, Version: "2.0", StartLimit: o.StartLimit, Goodbye: leaveWait,
	}, func(process *shared.Process) *agentProcess {
		proc := &agentProcess{Process: process, offered: &p.offered, late: &p.late}
		proc.opts.Store(&p.opts)
		return proc
	})
	return p
}

// Agent is the name given in Options.
func (p *Provider) Agent() cli.Agent { return p.opts.Agent }

// Modes is Live alone: the protocol has no other.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.Live} }

// Open opens a session in a process that fits, or in a new one; see cli.Provider.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	if mode != cli.Live {
		return nil, cli.Failf(cli.UnknownFailure, p.opts.Agent, "there is no %s mode", mode)
	}
	if err := checkDirs(req); err != nil {
		return nil, cli.Failf(cli.Refused, p.opts.Agent, "%v", err)
	}
	if p.opts.Resuming != nil && req.Resume != "" {
		if err := p.opts.Resuming(ctx, p.opts.env(req), req.Resume); err != nil {
			return nil, cli.AsFailure(p.opts.Agent, err)
		}
	}
	key := p.opts.key(req)
	proc, err := p.pool.Join(ctx, key, p.opts.command(req, key))
	if err != nil {
		return nil, cli.AsFailure(p.opts.Agent, err)
	}
	s, err := openSession(ctx, proc, req)
	if err != nil {
		_ = proc.Leave(context.WithoutCancel(ctx), shared.Broken) // why it did not open is the better error
		return nil, err
	}
	return s, nil
}

// Shares is the process that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int { return p.pool.PID(p.opts.key(req)) }

// Cannot says what of a permission mode the agent does not do, by the modes it offered in the last session that it
// opened; see cli.Limited.
func (p *Provider) Cannot(_ cli.Mode, permission cli.PermissionMode) string {
	offered := p.offered.Load()
	if offered == nil {
		return ""
	}
	_, cannot := modeFor(permission, *offered)
	return cannot
}
