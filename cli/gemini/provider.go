package gemini

import (
	"context"
	"strconv"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/gemini/guard"
)

// Agent is the agent's name.
const Agent cli.Agent = "gemini"

// EnvKeys returns the variables that only Gemini gets.
func EnvKeys() []string { return []string{"GEMINI_*", "GOOGLE_*"} }

// Options configures a Provider. All fields but Launcher may be zero.
type Options struct {
	cli.ProviderOptions
	// StateDir is the directory for the policies with which Gemini is started. It must have the same path for ductor
	// and for the agent. If it is empty, the package uses a folder in os.TempDir. All processes share its files, which
	// are named by their content.
	StateDir string
}

// Provider implements cli.Provider for Gemini. Safe for concurrent use.
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

// New returns a Provider. It starts no process.
func New(o Options) *Provider {
	o.ProviderOptions = o.OrDefault("gemini")
	p := &Provider{opts: o}
	p.live = p.acp()
	return p
}

// Agent implements cli.Provider.
func (p *Provider) Agent() cli.Agent { return Agent }

// Modes returns Live, which is preferred, and OneShot.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }

// Models implements cli.Provider.
func (p *Provider) Models(ctx context.Context) ([]cli.Model, error) { return p.live.Models(ctx) }

// Shares implements cli.Sharer.
func (p *Provider) Shares(req cli.Request) int { return p.live.Shares(req) }

// Cannot implements cli.Limited.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	if mode == cli.OneShot {
		_, cannot := approvalMode(permission)
		return cannot
	}
	return p.live.Cannot(mode, permission)
}

// ProjectFiles implements cli.ProjectReader. It returns the files of a project with settings for Gemini, which uses
// them if it trusts the directory.
func (p *Provider) ProjectFiles() []string {
	return []string{
		".gemini/",
		".agents/",
		".env",
	}
}

// Open implements cli.Provider. Live sessions share a process if they can.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	switch mode {
	case cli.Live:
		if err := p.writePolicy(req); err != nil {
			return nil, cli.AsFailure(Agent, err)
		}
		return p.live.Open(ctx, mode, req)
	case cli.OneShot:
		return p.once().Session(req), nil
	}
	return nil, cli.Failf(cli.UnknownFailure, Agent, "there is no %s mode", mode)
}

// Guard returns a function that protects a session, because Gemini may destroy it when it resumes it. The function
// works in the environment of l, where the agents have their files. It does nothing for sessions of other agents.
func Guard(l cli.Launcher) func(ctx context.Context, env []string, id cli.AgentSessionID) error {
	return func(ctx context.Context, env []string, id cli.AgentSessionID) error {
		if e, ok := l.(cli.Helper); ok {
			_, err := e.Help(ctx, env, guard.Verb, string(id))
			return err
		}
		return guard.Protect(home(env, cli.Variable(env, "HOME")), string(id))
	}
}

// Adopt implements cli.Provider.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.once().Adopt(ctx, left, req)
	}
	return p.live.Adopt(ctx, left, req)
}

func (p *Provider) env(req cli.Request) []string {
	return cli.AtHome(p.opts.ChildEnv(req, EnvKeys(), p.ownEnv(req)), req.Home, homeVars()...)
}

// trustVar decides whether Gemini trusts the directory that it works in.
const trustVar = "GEMINI_CLI_TRUST_WORKSPACE"

// ownEnv returns the variables that ductor sets in addition to the settings. They have three purposes: Gemini must
// remain the process that was started; it must trust the project's settings or not; and it must run commands without a
// terminal, because its live protocol does not report the output of a command in a terminal.
func (p *Provider) ownEnv(req cli.Request) map[string]string {
	env := map[string]string{
		"GEMINI_CLI_NO_RELAUNCH": "true",
		"GEMINI_PTY_INFO":        "child_process",
		trustVar:                 strconv.FormatBool(trusted(req)),
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

// trusted reports whether Gemini should trust the directory of a request. It returns false only if the request has a
// directory and excludes the settings of the project. Without trust, Gemini uses no settings of the project, but also
// no MCP servers at all and no mode beyond plan. Therefore ductor trusts directories without settings too. ductor's own
// questions have no directory, and trusted returns true for them.
func trusted(req cli.Request) bool { return req.Project != cli.WithoutProject || req.Dir == "" }

// envOfProjects returns the variables that Gemini reads from a .env file of an untrusted directory, or from one above
// it. It does not override variables that are set, even if they are empty.
func envOfProjects() []string {
	return []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"}
}
