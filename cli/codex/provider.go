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

// Agent is the agent's name.
const Agent cli.Agent = "codex"

// EnvKeys returns the variables that only Codex gets.
func EnvKeys() []string { return []string{"OPENAI_*", "CODEX_*"} }

// Options configures a Provider. All fields but Launcher may be zero.
type Options struct {
	cli.ProviderOptions
	Sandbox  string        // for permission modes that leave a choice; default: "workspace-write"
	Patience time.Duration // how long Codex may wait for the network in one turn; default: a minute
}

// Provider implements cli.Provider for Codex. Safe for concurrent use.
type Provider struct {
	opts Options
	pool *shared.Pool[*server]
	live shared.Dialect[news]

	mu sync.Mutex
	// totals is the usage of each thread until now. It is needed because Codex reports a running total for a resumed
	// thread.
	totals map[cli.AgentSessionID]cli.Usage

	modesMu sync.Mutex
	modes   []cli.Mode // nil until the version is known
}

// New returns a Provider.
func New(opts Options) *Provider {
	opts.ProviderOptions = opts.OrDefault("codex")
	opts.Patience = cmp.Or(opts.Patience, time.Minute)
	p := &Provider{opts: opts, totals: map[cli.AgentSessionID]cli.Usage{}}
	p.pool = shared.NewPool(shared.Options{ProviderOptions: opts.ProviderOptions, Agent: Agent}, p.newServer)
	// An interrupt may take effect only at the end of the turn. Other sessions share the process.
	p.live = shared.Dialect[news]{Join: p.join, Prompt: "turn.", Start: startWait, Interrupt: opts.Grace}
	return p
}

// Agent implements cli.Provider.
func (p *Provider) Agent() cli.Agent { return Agent }

// Open implements cli.Provider.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	switch mode {
	case cli.OneShot:
		return p.once().Session(req), nil
	case cli.Live:
		s := shared.NewSession(p.pool, &p.live)
		if err := s.Open(ctx, req); err != nil {
			return nil, err
		}
		return live{s}, nil
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

// Adopt implements cli.Provider.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.once().Adopt(ctx, left, req)
	}
	return p.adoptLive(ctx, left, req)
}

// leastMinor is the first version (0.x) whose app server supports the whole protocol that ductor uses: threads, turns
// that can be steered, and background terminals.
const leastMinor = 100

// Modes returns Live, which is preferred, and OneShot. If the installed version is too old for Live, it returns only
// OneShot. It asks Codex for the version until it knows it.
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

// hasAppServer reports whether a version is new enough. An unreadable version counts as new.
func hasAppServer(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 || parts[0] != "0" {
		return true
	}
	minor, err := strconv.Atoi(parts[1])
	return err != nil || minor >= leastMinor
}
