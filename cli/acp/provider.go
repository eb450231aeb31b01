package acp

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/lang"
)

// Provider implements cli.Provider for one agent. Safe for concurrent use.
type Provider struct {
	opts Options

	pool *shared.Pool[*agentProcess]
	live shared.Dialect[news]
	// offered contains the modes that the agent offered in the session that was opened last. It is nil before the first
	// session.
	offered atomic.Pointer[[]offer]
	// reported is the catalogue entry for the name that the last started process reported. It is nil before the first
	// process has started.
	reported atomic.Pointer[Entry]
	efforts  sync.Map             // model ID to the choice of efforts that the agent offers for the model
	lists    atomic.Pointer[bool] // whether the agent can list its sessions; nil if unknown
	login    *login
	spent    spent
	// late is set if the agent has sent text after the reply that ended a turn.
	late atomic.Bool
}

var (
	_ cli.Provider   = (*Provider)(nil)
	_ cli.Limited    = (*Provider)(nil)
	_ cli.ModeHolder = (*Provider)(nil)
	_ cli.Sharer     = (*Provider)(nil)
	_ cli.Successor  = (*Provider)(nil)

	_ cli.ProjectReader = (*Provider)(nil)
)

// New returns a Provider. It starts no process.
func New(o Options) *Provider {
	o.ProviderOptions = o.OrDefault(o.Path)
	known, _ := EntryOf(o.Path)
	holds := maps.Clone(known.Holds)
	if holds == nil {
		holds = map[cli.PermissionMode]Holding{}
	}
	maps.Copy(holds, o.Holds)
	o.Holds, o.known = holds, known
	if len(o.Project.Files) == 0 {
		o.Project = known.Project
	}
	o.Start = cmp.Or(o.Start, shared.DefaultStartLimit)
	o.CallLimit = cmp.Or(o.CallLimit, DefaultCallLimit)
	o.StartDir = cmp.Or(o.StartDir, "/")
	p := &Provider{opts: o, login: &login{}}
	p.pool = shared.NewPool(shared.Options{
		ProviderOptions: o.ProviderOptions, Agent: o.Agent, Codec: rpc.JSON{Version: "2.0"},
		Goodbye: leaveWait, Cancels: methodCancelRequest,
	}, func(process *shared.Process) *agentProcess {
		proc := &agentProcess{Process: process, provider: p}
		proc.opts.Store(&p.opts)
		return proc
	})
	p.live = shared.Dialect[news]{Join: p.join, Prompt: "turn-", Interrupt: interruptWait}
	return p
}

// Agent implements cli.Provider.
func (p *Provider) Agent() cli.Agent { return p.opts.Agent }

// Modes returns only Live, because the protocol has no other mode.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.Live} }

// Open implements cli.Provider.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	if mode != cli.Live {
		return nil, cli.Failf(cli.UnknownFailure, p.opts.Agent, "failure.no-mode", mode)
	}
	if dir, found := relativeDir(req); found {
		return nil, cli.Failf(cli.NotRun, p.opts.Agent, "failure.relative-dir", dir)
	}
	s := live{shared.NewSession(p.pool, &p.live)}
	if err := s.Open(ctx, req); err != nil {
		return nil, err
	}
	return s, nil
}

// Shares implements cli.Sharer.
func (p *Provider) Shares(req cli.Request) int { return p.pool.PID(p.opts.key(req)) }

// Cannot implements cli.Limited. It uses the modes that the agent offered in its last session.
func (p *Provider) Cannot(_ cli.Mode, permission cli.PermissionMode) lang.Message {
	caveat, _ := p.held(cli.Request{Permission: permission, Attended: true})
	return caveat
}

// Unheld implements cli.ModeHolder.
func (p *Provider) Unheld(req cli.Request) lang.Message {
	caveat, held := p.held(req)
	if held {
		return lang.Message{}
	}
	return caveat
}

// held reports whether the agent respects the permission mode of a request. It returns true if this is unknown.
func (p *Provider) held(req cli.Request) (caveat lang.Message, held bool) {
	offered := p.offered.Load()
	if offered == nil {
		return lang.Message{}, true
	}
	o := p.opts
	if reported := p.reported.Load(); reported != nil {
		o.reported = *reported
	}
	_, caveat, held = o.holding(req, choice{values: *offered}.ids())
	return caveat, held
}

// learn stores the efforts that the agent offers for the session's current model.
func (p *Provider) learn(o offers) {
	if o.model.current != "" {
		p.efforts.Store(o.model.current, o.effort)
	}
}
