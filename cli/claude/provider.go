// Package claude lets ductor use Claude Code. It starts the program claude, writes prompts and decisions to its
// standard input, and converts its output in the stream-json format to the events of package cli.
//
// The package does not choose conversations and does not repeat failed turns; other packages do.
package claude

import (
	"context"
	"maps"
	"slices"

	"ductor/cli"
)

// Options configures a Provider. Only Launcher is required.
type Options struct {
	cli.ProviderOptions
	// PromptDir is the directory for files with system prompts. It must have the same path for ductor and for the
	// agent. The default is a directory of this user in os.TempDir.
	PromptDir string
	// Background receives the result of a turn that Claude started itself, for example after the end of a background
	// task. A goroutine of the session calls Background, so Background must not block for long.
	Background func(cli.Conversation, cli.BackgroundResult)
}

// Provider implements cli.Provider for Claude Code. It is safe for concurrent use.
type Provider struct {
	opts Options
}

var _ cli.Provider = (*Provider)(nil)

// New returns a Provider. It starts no process.
func New(o Options) *Provider {
	o.ProviderOptions = o.OrDefault("claude")
	return &Provider{opts: o}
}

// Agent implements cli.Provider.
func (p *Provider) Agent() cli.Agent { return agent }

// Modes implements cli.Provider.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }

// Open implements cli.Provider.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	if mode == cli.OneShot {
		return p.once().Session(req), nil
	}
	if !slices.Contains(p.Modes(), mode) {
		return nil, cli.Failf(cli.UnknownFailure, agent, "mode %q is not supported", mode)
	}
	s := &live{provider: p, conversation: req.Conversation, setting: p.settingOf(formatLive, req)}
	s.turnSettings = s.setting.Turn
	if err := s.start(ctx, req); err != nil {
		return nil, err
	}
	return s, nil
}

// launch starts Claude for req. The caller must stop the process. mode is empty if the process only answers a short
// query. Errors are *cli.Failure.
func (p *Provider) launch(ctx context.Context, f format, mode cli.Mode, req cli.Request) (cli.Process, error) {
	files, err := p.writePrompts(req)
	if err != nil {
		return nil, cli.AsFailure(agent, err)
	}
	args, err := p.arguments(f, req, files)
	if err != nil {
		return nil, cli.Failf(cli.Refused, agent, "%v", err)
	}
	cmd := cli.Command{
		Path: p.opts.Path, Args: args, Files: files.paths(), Dir: req.Dir, Env: p.environment(req),
		For: cli.Purpose{Agent: agent, Mode: mode, Conversation: req.Conversation, Setting: p.settingOf(f, req).String()},
	}
	if mode == cli.OneShot {
		cmd.Turn = req.Turn
	}
	proc, err := p.opts.Launcher.Start(ctx, cmd)
	if err != nil {
		return nil, cli.StartFailure(agent, err)
	}
	return proc, nil
}

var (
	_ cli.Limited    = (*Provider)(nil)
	_ cli.ToolHolder = (*Provider)(nil)
)

// CannotHold implements cli.ToolHolder. If a request permits only some tools, ductor starts Claude with
// --strict-mcp-config; see projectFlags. Claude then has only the MCP servers in req.Servers. CannotHold returns a
// reason if the request permits the tools of another server.
func (*Provider) CannotHold(req cli.Request) string {
	servers, _ := cli.Servers(req.Tools.Only)
	for _, name := range servers {
		if !slices.ContainsFunc(req.Servers, func(s cli.ToolServer) bool { return s.Name == name }) {
			return "Claude cannot be told to use no other MCP servers than some; deny those that it should not use"
		}
	}
	return ""
}

// Cannot implements cli.Limited. A process for one turn cannot ask the user.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	switch {
	case mode != cli.OneShot || permission == cli.Bypass:
		return ""
	case permission == cli.Plan:
		return "Claude run once cannot have its plan approved: answer it with the next message"
	}
	return "Claude run once cannot ask: what needs permission is denied, " + cli.OnceDenies
}

// ProjectFiles implements cli.ProjectReader. With -p, Claude would run the hooks and MCP servers in these files without
// asking.
func (p *Provider) ProjectFiles() []string {
	return []string{
		".mcp.json",
		".claude/settings.json",
		".claude/settings.local.json",
		".claude/scheduled_tasks.json",
		".claude/launch.json",
		".claude/agents/",
		".claude/commands/",
		".claude/output-styles/",
		".claude/plugins/",
		".claude/routines/",
		".claude/skills/",
		".claude/workflows/",
	}
}

// arguments returns the command line for req. A session with its own home directory must not use the skills, commands
// and agents of the user who runs ductor. Claude also searches the parents of the working directory, and would find
// these files if the working directory is below that user's home directory.
//
// In this case, arguments adds a flag that makes Claude read settings, skills, commands and agents only from the
// session's home directory. Claude then also ignores those in the working directory.
func (p *Provider) arguments(f format, req cli.Request, files promptFiles) ([]string, error) {
	args, err := arguments(f, req, files)
	if req.Home != "" && p.opts.OwnerHome != "" && reaches(req.Dir, p.opts.OwnerHome) {
		args = append(args, "--setting-sources=user")
	}
	return args, err
}

// environment returns the complete environment of a process that serves req.
func (p *Provider) environment(req cli.Request) []string {
	parent := p.opts.Env()
	own := map[string]string{
		"DISABLE_AUTOUPDATER": "1", // an update could break a running Claude
		// MCP_CONNECT_TIMEOUT_MS is how long Claude waits for a server with alwaysLoad. Claude then starts without the
		// server's tools. The default of five seconds is too short for ductor's own server on a busy small machine.
		"MCP_CONNECT_TIMEOUT_MS": "15000",
	}
	maps.DeleteFunc(own, func(name, _ string) bool { return cli.Variable(parent, name) != "" })
	maps.Copy(own, projectVars(req))
	if req.Permission == cli.Bypass {
		// As root, Claude accepts this mode only in a sandbox. The user accepted the risk by choosing the mode.
		own["IS_SANDBOX"] = "1"
	}
	return atHome(req.Home, p.opts.OwnerHome, p.opts.ChildEnv(req, allowedEnv(parent), own))
}

// settingOf returns the settings with which a process for req starts.
func (p *Provider) settingOf(f format, req cli.Request) setting {
	s := setting{Turn: turnSettingsOf(req), Format: f}
	s.Begin = cli.Digest(req.Resume)
	bare := req
	bare.Resume = ""
	if changeable(req.ExtraArgs) {
		bare.Model, bare.Effort, bare.Permission = "", "", cli.Ask
	}
	args, err := p.arguments(f, bare, promptFiles{})
	if err != nil {
		args = []string{err.Error()} // no running process has an error as its arguments, so none fits req
	}
	replace, add := ownPrompts(req)
	env := p.environment(bare)
	slices.Sort(env)
	s.Digest = cli.Digest(args, replace, add, env, req.Dir)
	return s
}
