package codex

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
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
	return cli.ChildEnv(p.opts.Env(), slices.Concat(cli.BaseEnv(), EnvKeys(), p.opts.AllowEnv), extra)
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

// Adopt makes a session of a run that an earlier ductor left.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.adoptExec(ctx, left, req)
	}
	return nil, cli.Failf(cli.UnknownFailure, Agent, "no %s mode", left.Mode)
}
