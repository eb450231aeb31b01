package codex

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"ductor/cli"
)

// Agent is the dialect's name.
const Agent cli.Agent = "codex"

// EnvKeys are the variables that Codex and no other agent is given.
func EnvKeys() []string { return []string{"OPENAI_*", "CODEX_*"} }

// Options configure a Provider. The zero value of every field but Launcher is usable.
type Options struct {
	Launcher cli.Launcher // where processes start; required
	Path     string       // the program; "codex" when empty
	// Env is the environment that a child's is picked from; os.Environ when nil.
	Env      func() []string
	AllowEnv []string // further names or NAME_* patterns that a child may see
	// ReadFile reads the log-in file from where the agent runs; os.ReadFile when nil.
	ReadFile func(path string) ([]byte, error)
	Sandbox  string // for permission modes that leave a choice; "workspace-write" when empty
	// Grace is how long a process may take to end when asked to; Stall how long Codex may be silent when
	// no tool runs, ToolStall when one does. The Stream's own limits when 0.
	Grace, Stall, ToolStall time.Duration
	Patience                time.Duration    // how long Codex may wait for the network in one turn; a minute when 0
	Now                     func() time.Time // the clock durations are taken from; time.Now when nil
	Logger                  *slog.Logger     // none when nil
}

// Provider is Codex. Safe for concurrent use.
type Provider struct {
	opts Options

	mu sync.Mutex
	// totals is what each thread has used so far: Codex reports a resumed thread's running total.
	totals   map[cli.AgentSessionID]cli.Usage
	hubs     map[string]*hub    // by what binds a process
	attached map[cli.RunID]*hub // of runs that an earlier ductor left

	modesMu sync.Mutex
	modes   []cli.Mode // nil until the version is known
}

// New makes a Provider.
func New(opts Options) *Provider {
	opts.Path = cmp.Or(opts.Path, "codex")
	opts.Patience = cmp.Or(opts.Patience, time.Minute)
	if opts.Env == nil {
		opts.Env = os.Environ
	}
	if opts.ReadFile == nil {
		opts.ReadFile = os.ReadFile
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Provider{
		opts: opts, totals: map[cli.AgentSessionID]cli.Usage{}, hubs: map[string]*hub{}, attached: map[cli.RunID]*hub{},
	}
}

// Agent is "codex".
func (p *Provider) Agent() cli.Agent { return Agent }

// Open makes a session. In OneShot mode nothing is started: each turn starts its own process.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	switch mode {
	case cli.OneShot:
		return &session{provider: p, home: req.Home, thread: req.Resume}, nil
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
	extra := maps.Clone(req.Env)
	if extra == nil {
		extra = map[string]string{}
	}
	if req.ChatID != 0 {
		extra[cli.ChatIDVar] = strconv.FormatInt(req.ChatID, 10)
	}
	env := cli.ChildEnv(p.opts.Env(), slices.Concat(cli.BaseEnv(), EnvKeys(), p.opts.AllowEnv), extra)
	return cli.AtHome(env, req.Home, homeVars()...)
}

func (p *Provider) parser(out *cli.Emitter, req cli.Request) *parser {
	return &parser{
		out: out, dir: req.Dir, resume: req.Resume, model: req.Model, now: p.opts.Now,
		sandbox: mannerOf(req.Permission, false, p.opts.Sandbox).sandbox, patience: p.opts.Patience,
		garbage: func([]byte) {},
	}
}

func (p *Provider) startFailure(err error) *cli.Failure {
	if errors.Is(err, fs.ErrNotExist) {
		return &cli.Failure{Kind: cli.NotInstalled, Agent: Agent, Cause: err}
	}
	return cli.AsFailure(Agent, err)
}

// Adopt makes a session of a run that an earlier ductor left.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.adoptExec(ctx, left, req)
	}
	return p.adoptLive(ctx, left, req)
}

func (p *Provider) grace() time.Duration     { return orElse(p.opts.Grace, cli.DefaultGrace) }
func (p *Provider) stall() time.Duration     { return orElse(p.opts.Stall, cli.DefaultStall) }
func (p *Provider) toolStall() time.Duration { return orElse(p.opts.ToolStall, cli.DefaultToolStall) }

func orElse(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}
