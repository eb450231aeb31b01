package gemini

import (
	"context"
	"strconv"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/gemini/guard"
)

// Agent is the dialect's name.
const Agent cli.Agent = "gemini"

// EnvKeys are the variables that Gemini and no other agent is given.
func EnvKeys() []string { return []string{"GEMINI_*", "GOOGLE_*"} }

// Options configure a Provider. The zero value of every field but Launcher is usable.
type Options struct {
	cli.ProviderOptions
	// StateDir is where the policies are put that Gemini is started with: a directory that is the same to us and to
	// the agent. A folder of os.TempDir when empty. What is in it is shared by all processes and named by its
	// content.
	StateDir string
}

// Provider is Gemini. Safe for concurrent use.
type Provider struct {
	opts Options
	live *acp.Provider
}

var (
	_ cli.Provider   = (*Provider)(nil)
	_ cli.Limited    = (*Provider)(nil)
	_ cli.Sharer     = (*Provider)(nil)
	_ cli.ToolHolder = (*Provider)(nil)
)

// New makes a Provider. It starts nothing.
func New(o Options) *Provider {
	o.ProviderOptions = o.OrDefault("gemini")
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

// Shares is the process that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int { return p.live.Shares(req) }

// Cannot says what of a permission mode Gemini does not do; see cli.Limited.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	if mode == cli.OneShot {
		_, cannot := approvalMode(permission)
		return cannot
	}
	return p.live.Cannot(mode, permission)
}

// ProjectFiles are the files of a project that Gemini takes settings from where it trusts the directory; see
// cli.ProjectReader.
func (p *Provider) ProjectFiles() []string {
	return []string{
		".gemini/",
		".agents/",
		".env",
	}
}

// Open makes a session; see cli.Provider. Live sessions share a process where they can.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	switch mode {
	case cli.Live:
		if err := p.keepPolicy(req); err != nil {
			return nil, cli.AsFailure(Agent, err)
		}
		return p.live.Open(ctx, mode, req)
	case cli.OneShot:
		return p.once().Session(req), nil
	}
	return nil, cli.Failf(cli.UnknownFailure, Agent, "there is no %s mode", mode)
}

// Guard returns a function that keeps a session from being destroyed when it is resumed, where the agents of l have their files. It does
// nothing for a session that is not Gemini's.
func Guard(l cli.Launcher) func(ctx context.Context, env []string, id cli.AgentSessionID) error {
	return func(ctx context.Context, env []string, id cli.AgentSessionID) error {
		if e, ok := l.(cli.Helper); ok {
			_, err := e.Help(ctx, env, guard.Verb, string(id))
			return err
		}
		return guard.Protect(home(env, cli.Variable(env, "HOME")), string(id))
	}
}

// Adopt resumes a turn that the previous process began; see cli.Provider.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.once().Adopt(ctx, left, req)
	}
	return p.live.Adopt(ctx, left, req)
}

func (p *Provider) env(req cli.Request) []string {
	return cli.AtHome(p.opts.ChildEnv(req, EnvKeys(), p.ownEnv(req)), req.Home, homeVars()...)
}

// ownEnv is what Gemini is told besides its settings: to stay the process that was started, whether to trust the
// project's settings, and to run commands without a terminal, since of one in a terminal its live protocol does
// not say what it printed.
func (p *Provider) ownEnv(req cli.Request) map[string]string {
	env := map[string]string{
		"GEMINI_CLI_NO_RELAUNCH":     "true",
		"GEMINI_PTY_INFO":            "child_process",
		"GEMINI_CLI_TRUST_WORKSPACE": strconv.FormatBool(trusted(req)),
	}
	if !trusted(req) {
		for _, name := range envOfProjects() {
			if cli.Variable(p.opts.Env(), name) == "" {
				env[name] = ""
			}
		}
	}
	return env
}

// trusted reports whether Gemini is to trust the directory of a request. Where it does not, it uses no settings of the project, no
// MCP server at all, and no mode beyond plan. So it trusts a directory in which there are no settings, and one of ductor's own
// questions, which are asked in none.
func trusted(req cli.Request) bool { return req.Project != cli.WithoutProject || req.Dir == "" }

// envOfProjects are the variables that Gemini takes from a .env file of a directory that it does not trust, or from one above
// it. It takes none that it has, empty or not.
func envOfProjects() []string {
	return []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"}
}
