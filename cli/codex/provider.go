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

// Agent is the name of this agent.
const Agent cli.Agent = "codex"

// EnvKeys returns patterns of the environment variables that ductor passes to Codex, but not to other agents.
func EnvKeys() []string { return []string{"OPENAI_*", "CODEX_*"} }

// Options configures a Provider. Only Launcher is required.
type Options struct {
	cli.ProviderOptions
	Sandbox  string        // sandbox to use instead of "workspace-write"; see permissionsOf
	Patience time.Duration // how long Codex may wait for the network in a turn; default: a minute
}

// Provider implements cli.Provider for Codex. Safe for concurrent use.
type Provider struct {
	opts Options
	pool *shared.Pool[*server]
	live shared.Dialect[news]

	mu sync.Mutex
	// totals contains the token usage of each thread so far. For a resumed thread, Codex reports only the new total, so
	// ductor subtracts the previous total to get the usage of a turn.
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
	// Codex may react to an interrupt only at the end of the turn. ductor gives Codex time for this, because killing
	// the process would end other sessions, too.
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

// leastMinor is the first minor version (0.x) whose app server supports everything that ductor uses: threads, messages
// during a turn, and background terminals.
const leastMinor = 100

// Modes implements cli.Provider. It returns only OneShot if the installed version is too old for Live. It asks Codex
// for its version, and remembers the result.
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

// hasAppServer reports whether the version is new enough for Live. It returns true for an unreadable version.
func hasAppServer(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 || parts[0] != "0" {
		return true
	}
	minor, err := strconv.Atoi(parts[1])
	return err != nil || minor >= leastMinor
}
