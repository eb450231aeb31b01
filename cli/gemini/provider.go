package gemini

import (
	"context"
	"strconv"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/gemini/guard"
)

// Agent is the name of this agent.
const Agent cli.Agent = "gemini"

// EnvKeys returns patterns of the environment variables that ductor passes to Gemini, but not to other agents.
func EnvKeys() []string { return []string{"GEMINI_*", "GOOGLE_*"} }

// Options configures a Provider. Only Launcher is required.
type Options struct {
	cli.ProviderOptions
	// StateDir is the directory for policy files. It must have the same path for ductor and for the agent. The default
	// is a folder in os.TempDir. Processes with the same policy share a file.
	StateDir string
	StartDir string // working directory of processes that must not start in a project; see acp.Options.StartDir
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

// Modes implements cli.Provider.
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

// ProjectFiles implements cli.ProjectReader. Gemini uses these files of a project if it trusts the directory.
func (p *Provider) ProjectFiles() []string {
	return []string{
		".gemini/",
		".agents/",
		".env",
	}
}

// Open implements cli.Provider.
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

// Guard returns a function that protects a session before Gemini resumes it; see package guard. The returned function
// does nothing for a session of another agent. The launcher must be the one that starts Gemini, because the session's
// files are where Gemini runs.
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

// trustVar is the environment variable that makes Gemini trust or not trust the working directory.
const trustVar = "GEMINI_CLI_TRUST_WORKSPACE"

// ownEnv returns the environment variables that ductor itself sets:
//
//   - GEMINI_CLI_NO_RELAUNCH prevents Gemini from replacing its own process.
//   - GEMINI_PTY_INFO makes Gemini run commands without a terminal. The live protocol does not report the output of a
//     command in a terminal.
//   - trustVar tells Gemini whether to use the project's settings.
//   - If Gemini must not use the project's settings, the variables in envOfProjects are empty. Gemini then does not
//     read these variables from a .env file.
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

// trusted reports whether Gemini should trust the directory of a request. In a directory that it does not trust, Gemini
// ignores the project's settings. It also ignores all MCP servers, and every mode except plan. trusted therefore
// returns false only if the project has settings that no user has allowed.
//
// A request without a directory is not from a user, but from ductor itself. trusted returns true for such a request.
func trusted(req cli.Request) bool { return req.Project != cli.WithoutProject || req.Dir == "" }

// envOfProjects returns the environment variables that Gemini reads from a .env file in an untrusted directory or its
// parents. Gemini does not read a variable from the file if the variable is already set, even to an empty value.
func envOfProjects() []string {
	return []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"}
}
