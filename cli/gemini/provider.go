package gemini

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"ductor/cli"
	"ductor/cli/acp"
)

// Agent is the dialect's name.
const Agent cli.Agent = "gemini"

// EnvKeys are the variables that Gemini and no other agent is given.
func EnvKeys() []string { return []string{"GEMINI_*", "GOOGLE_*"} }

// Options configure a Provider. The zero value of every field but Launcher is usable.
type Options struct {
	Launcher cli.Launcher // where processes start; required
	Path     string       // the program; "gemini" when empty
	// Env is the environment that a child's is picked from; os.Environ when nil.
	Env      func() []string
	AllowEnv []string // further names or NAME_* patterns that a child may see
	// ReadFile reads log-in and settings files from where the agent runs; os.ReadFile when nil.
	ReadFile func(path string) ([]byte, error)
	// StateDir is where the policies are put that Gemini is started with: a directory that is the same to us and to
	// the agent. A folder of os.TempDir when empty. What is in it is shared by all processes and named by its
	// content.
	StateDir string
	// Grace is how long a process may take to end when asked to; Stall how long Gemini may be silent when no tool
	// runs, ToolStall when one does. Defaults are those of package cli.
	Grace, Stall, ToolStall time.Duration
	Now                     func() time.Time // the clock durations are taken from; time.Now when nil
	Logger                  *slog.Logger     // discards when nil
}

// Provider is Gemini. Safe for concurrent use.
type Provider struct {
	opts Options
	live *acp.Provider
}

var _ cli.Provider = (*Provider)(nil)

// New makes a Provider. It starts nothing.
func New(o Options) *Provider {
	o.Path = cmp.Or(o.Path, "gemini")
	o.Grace = cmp.Or(o.Grace, cli.DefaultGrace)
	if o.Env == nil {
		o.Env = os.Environ
	}
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	p := &Provider{opts: o}
	p.live = p.acp()
	return p
}

// Agent is "gemini".
func (p *Provider) Agent() cli.Agent { return Agent }

// Modes are Live and OneShot; Live is the preferred one.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }

// Models asks Gemini for the models a user may pick.
func (p *Provider) Models(ctx context.Context) ([]cli.Model, error) { return p.live.Models(ctx) }

// Open makes a session; see cli.Provider. Live sessions share a process where they can.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	switch mode {
	case cli.Live:
		if err := p.guard(req); err != nil {
			return nil, cli.AsFailure(Agent, err)
		}
		return p.live.Open(ctx, mode, req)
	case cli.OneShot:
		return newOneShot(p, req.Home), nil
	}
	return nil, cli.Failf(cli.UnknownFailure, Agent, "there is no %s mode", mode)
}

// Adopt goes on with a turn of an earlier ductor; see cli.Provider. Idle processes are not adopted: they serve
// several conversations.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.adoptOneShot(ctx, left, req)
	}
	return p.live.Adopt(ctx, left, req)
}

func (p *Provider) env(req cli.Request) []string {
	extra := ownEnv()
	maps.Copy(extra, req.Env)
	if req.ChatID != 0 {
		extra[cli.ChatIDVar] = strconv.FormatInt(req.ChatID, 10)
	}
	env := cli.ChildEnv(p.opts.Env(), slices.Concat(cli.BaseEnv(), EnvKeys(), p.opts.AllowEnv), extra)
	return cli.AtHome(env, req.Home, homeVars()...)
}

// ownEnv is what Gemini is told besides its settings: to stay the process that was started, that whoever chose the
// directory trusts it, and to run commands without a terminal, since of one in a terminal its live protocol does
// not say what it printed.
func ownEnv() map[string]string {
	return map[string]string{
		"GEMINI_CLI_NO_RELAUNCH":     "true",
		"GEMINI_PTY_INFO":            "child_process",
		"GEMINI_CLI_TRUST_WORKSPACE": "true",
	}
}

func (p *Provider) startFailure(err error) *cli.Failure {
	if errors.Is(err, fs.ErrNotExist) {
		return &cli.Failure{Kind: cli.NotInstalled, Agent: Agent, Cause: err}
	}
	return cli.AsFailure(Agent, err)
}
