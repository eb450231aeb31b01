// Package claude speaks Claude Code: its command line, its stream-json protocol in and out, its control
// requests, its log-in and its models.
//
// It translates one turn into cli events and nothing more: which conversation runs when, what is
// repeated after a failure and where processes start are decided above it. It is not a general agent
// runner, and it knows nothing of chats.
package claude

import (
	"context"
	"maps"
	"slices"

	"ductor/cli"
)

// Options configure a Provider. The zero value of every field but Launcher is usable.
type Options struct {
	cli.ProviderOptions
	// PromptDir is where the files with system prompts are kept: a directory that is the same to us and to the agent. One of
	// this user in os.TempDir when empty.
	PromptDir string
	// Background gets the result of a turn that Claude began between ours, as it does when a
	// background task is done. It is called from a goroutine of the session and must not block for long.
	Background func(cli.Conversation, cli.BackgroundResult)
}

// Provider speaks Claude Code. It is safe for concurrent use.
type Provider struct {
	opts Options
}

var _ cli.Provider = (*Provider)(nil)

// New makes a Provider. It starts nothing.
func New(o Options) *Provider {
	o.ProviderOptions = o.OrDefault("claude")
	return &Provider{opts: o}
}

// Agent is "claude".
func (p *Provider) Agent() cli.Agent { return agent }

// Modes are Live and OneShot; Live is the preferred one.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }

// Open makes a session; see cli.Provider.
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

// launch starts Claude for req; whoever gets the process stops it. mode is empty for a probe. Errors are
// *cli.Failure.
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

// CannotHold says that Claude can be told which tools of its own there are, and of MCP servers only which not; see cli.ToolHolder.
func (*Provider) CannotHold(req cli.Request) string {
	servers, _ := cli.Servers(req.Tools.Only)
	for _, name := range servers {
		if !slices.ContainsFunc(req.Servers, func(s cli.ToolServer) bool { return s.Name == name }) { // which has no other, strictly
			return "Claude cannot be told to use no other MCP servers than some; deny those that it should not use"
		}
	}
	return ""
}

// Cannot says what of a permission mode Claude does not do: run once, it cannot ask; see cli.Limited.
func (p *Provider) Cannot(mode cli.Mode, permission cli.PermissionMode) string {
	switch {
	case mode != cli.OneShot || permission == cli.Bypass:
		return ""
	case permission == cli.Plan:
		return "Claude run once cannot have its plan approved: answer it with the next message"
	case permission == cli.AcceptEdits:
		return "Claude run once cannot ask: it decides on edits without asking, also of hidden files, and what else needs permission is denied"
	}
	return "Claude run once cannot ask: what needs permission is denied"
}

// ProjectFiles are the files of a project that Claude takes settings from; see cli.ProjectReader. With -p it runs their
// hooks and MCP servers without asking.
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

// arguments is the command line for req. A session with a home of its own gets none of the owner's skills, commands and agents,
// also in a directory from which Claude would find them; it gets none of the directory's either then.
func (p *Provider) arguments(f format, req cli.Request, files promptFiles) ([]string, error) {
	args, err := arguments(f, req, files)
	if req.Home != "" && p.opts.OwnerHome != "" && reaches(req.Dir, p.opts.OwnerHome) {
		args = append(args, "--setting-sources=user")
	}
	return args, err
}

// environment is what a process started for req sees, and nothing else.
func (p *Provider) environment(req cli.Request) []string {
	parent := p.opts.Env()
	own := map[string]string{
		"DISABLE_AUTOUPDATER": "1", // a CLI that changes under a running bot breaks it
		// Claude begins without the tools of a server that it is always to load if that is not there after this time. Its own five
		// seconds are too few for ductor's on a busy small box.
		"MCP_CONNECT_TIMEOUT_MS": "15000",
	}
	maps.DeleteFunc(own, func(name, _ string) bool { return cli.Variable(parent, name) != "" })
	maps.Copy(own, projectVars(req))
	if req.Permission == cli.Bypass {
		// Claude run by root takes this mode only when told that the place is a sandbox; whoever picked
		// the mode for the conversation took that on.
		own["IS_SANDBOX"] = "1"
	}
	return atHome(req.Home, p.opts.OwnerHome, p.opts.ChildEnv(req, allowedEnv(parent), own))
}

// settingOf is the setting of a process for req.
func (p *Provider) settingOf(f format, req cli.Request) setting {
	s := setting{Turn: turnSettingsOf(f, req), Format: f}
	s.Begin = cli.Digest(req.Resume)
	bare := req
	bare.Resume = ""
	if changeable(req.ExtraArgs) {
		bare.Model, bare.Effort, bare.Permission = "", "", cli.Ask
	}
	args, err := p.arguments(f, bare, promptFiles{})
	if err != nil {
		args = []string{err.Error()} // a mode that is not known fits nothing
	}
	replace, add := ownPrompts(req)
	env := p.environment(bare)
	slices.Sort(env)
	s.Digest = cli.Digest(args, replace, add, env, req.Dir)
	return s
}
