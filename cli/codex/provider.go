package codex

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strconv"
	"sync"
	"time"

	"ductor/cli"
)

// Agent is the dialect's name.
const Agent cli.Agent = "codex"

// EnvKeys are the variables that Codex and no other agent is given.
func EnvKeys() []string { return []string{"OPENAI_*", "CODEX_*"} }

// Options configure a Provider. Launcher is required.
type Options struct {
	Path     string // the program; "codex" is looked up
	Launcher cli.Launcher
	Env      []string // what a child's environment is picked from, as os.Environ gives it
	EnvAllow []string // names or PREFIX_* patterns to pass on beyond the usual ones
	Sandbox  string   // for modes that leave a choice; empty is workspace-write

	Stream   cli.StreamOptions // timers of a turn
	Patience time.Duration     // how long Codex may wait for the network in one turn
	Now      func() time.Time
}

// Provider is Codex. Safe for concurrent use.
type Provider struct {
	opts Options

	mu sync.Mutex
	// totals is what each thread has used so far: Codex reports a resumed thread's running total.
	totals map[cli.AgentSessionID]cli.Usage
}

// New makes a Provider.
func New(opts Options) *Provider {
	if opts.Path == "" {
		opts.Path = "codex"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Patience == 0 {
		opts.Patience = time.Minute
	}
	return &Provider{opts: opts, totals: make(map[cli.AgentSessionID]cli.Usage)}
}

// Agent is "codex".
func (p *Provider) Agent() cli.Agent { return Agent }

// Modes is one-shot alone: exec is a process per turn.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.OneShot} }

// Open starts nothing: each turn starts its own process.
func (p *Provider) Open(_ context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	if mode != cli.OneShot {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "no %s mode", mode)
	}
	return &session{provider: p, thread: req.Resume}, nil
}

func (p *Provider) env(req cli.Request) []string {
	extra := maps.Clone(req.Env)
	if extra == nil {
		extra = map[string]string{}
	}
	if req.ChatID != 0 {
		extra[cli.ChatIDVar] = strconv.FormatInt(req.ChatID, 10)
	}
	return cli.ChildEnv(p.opts.Env, append(append(cli.BaseEnv(), EnvKeys()...), p.opts.EnvAllow...), extra)
}

func (p *Provider) parser(out *cli.Emitter, req cli.Request) *parser {
	return &parser{
		out: out, dir: req.Dir, resume: req.Resume, model: req.Model, now: p.opts.Now,
		sandbox: sandboxOf(req.Permission, p.opts.Sandbox), patience: p.opts.Patience,
		garbage: func([]byte) {},
	}
}

func (p *Provider) startFailure(err error) *cli.Failure {
	if errors.Is(err, fs.ErrNotExist) {
		return &cli.Failure{Kind: cli.NotInstalled, Agent: Agent, Cause: err}
	}
	return cli.AsFailure(Agent, err)
}

// used gives what one turn used, from the thread's running total.
func (p *Provider) used(thread, resumed cli.AgentSessionID, total cli.Usage) cli.Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.totals[thread]
	p.totals[thread] = total
	if resumed != "" && !known {
		// The total counts turns of an earlier ductor, which were counted then.
		return cli.Usage{}
	}
	return total.Sub(before)
}
