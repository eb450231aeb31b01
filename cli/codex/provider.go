package codex

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// Agent is the dialect's name.
const Agent cli.Agent = "codex"

// EnvKeys are the variables that Codex and no other agent is given.
func EnvKeys() []string { return []string{"OPENAI_*", "CODEX_*"} }

// Options configure a Provider. The zero value of every field but Launcher is usable.
type Options struct {
	cli.ProviderOptions
	Sandbox  string        // for permission modes that leave a choice; "workspace-write" when empty
	Patience time.Duration // how long Codex may wait for the network in one turn; a minute when 0
}

// Provider is Codex. Safe for concurrent use.
type Provider struct {
	opts Options
	pool *shared.Pool[*server]

	mu sync.Mutex
	// totals is what each thread has used so far: Codex reports a resumed thread's running total.
	totals map[cli.AgentSessionID]cli.Usage

	modesMu sync.Mutex
	modes   []cli.Mode // nil until the version is known
}

// New makes a Provider.
func New(opts Options) *Provider {
	opts.ProviderOptions = opts.OrDefault("codex")
	opts.Patience = cmp.Or(opts.Patience, time.Minute)
	p := &Provider{opts: opts, totals: map[cli.AgentSessionID]cli.Usage{}}
	p.pool = shared.NewPool(shared.Options{ProviderOptions: opts.ProviderOptions, Agent: Agent}, p.newServer)
	return p
}

// Agent is "codex".
func (p *Provider) Agent() cli.Agent { return Agent }

// Open makes a session. In OneShot mode nothing is started: each turn starts its own process.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	switch mode {
	case cli.OneShot:
		return p.once().Session(req), nil
	case cli.Live:
		s, err := p.openLive(ctx, req)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, cli.Failf(cli.UnknownFailure, Agent, "no %s mode", mode)
}

func (p *Provider) env(req cli.Request) []string {
	return cli.AtHome(p.opts.ChildEnv(req, EnvKeys(), nil), req.Home, homeVars()...)
}

func (p *Provider) parser(out *turn.Emitter, req cli.Request) *parser {
	return &parser{
		out: out, req: req, network: network{now: out.Now, patience: p.opts.Patience},
		sandbox: permissionsFor(req, false, p.opts.Sandbox).sandbox,
		garbage: func([]byte) {},
	}
}

// Adopt makes a session of a run that the previous process left.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.once().Adopt(ctx, left, req)
	}
	return p.adoptLive(ctx, left, req)
}

// leastMinor is the first version 0.x whose app server has all of the protocol that ductor speaks: threads, turns
// that can be steered, and background terminals.
const leastMinor = 100

// Modes is live before one-shot, unless the installed version is too old for it. The version is asked for until it
// is known.
func (p *Provider) Modes() []cli.Mode {
	p.modesMu.Lock()
	defer p.modesMu.Unlock()
	if p.modes != nil {
		return p.modes
	}
	both := []cli.Mode{cli.Live, cli.OneShot}
	switch v, _ := turn.Version(context.Background(), p.opts.ProviderOptions, Agent, p.env(cli.Request{})); {
	case v == "":
		return both
	case hasAppServer(v):
		p.modes = both
	default:
		p.modes = []cli.Mode{cli.OneShot}
	}
	return p.modes
}

// hasAppServer says whether a version is new enough. One that cannot be read is taken for new.
func hasAppServer(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 || parts[0] != "0" {
		return true
	}
	minor, err := strconv.Atoi(parts[1])
	return err != nil || minor >= leastMinor
}
