package claude

import (
	"context"
	"os"
	"slices"

	"ductor/cli"
)

// Options configure a Provider. The zero value of every field but Launcher is usable.
type Options struct {
	cli.ProviderOptions
	// OwnerHome is the home of whoever runs ductor, on the machine the agent runs on. Sessions with homes of their own
	// share the log-in in there, and nothing else of it. Empty where there is none, as in a container.
	OwnerHome string
	// ReadFile reads log-in files from where the agent runs; os.ReadFile when nil. Return an error to
	// rely on the CLI's own word alone.
	ReadFile func(path string) ([]byte, error)
	// PromptDir is where the files with system prompts are put while a process runs: a directory that is
	// the same to us and to the agent. os.TempDir when empty.
	PromptDir string
	// Background gets the result of a turn that Claude began between ours, as it does when a
	// background task is done. It is called from a goroutine of the session and must not block for long.
	Background func(cli.Conversation, cli.Result)
}

// Provider speaks Claude Code. It is safe for concurrent use.
type Provider struct {
	opts Options
}

var _ cli.Provider = (*Provider)(nil)

// New makes a Provider. It starts nothing.
func New(o Options) *Provider {
	o.ProviderOptions = o.OrDefault("claude")
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	return &Provider{opts: o}
}

// Agent is "claude".
func (p *Provider) Agent() cli.Agent { return agent }

// Modes are Live and OneShot; Live is the preferred one.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }

// Open makes a session; see cli.Provider.
func (p *Provider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	if mode == cli.OneShot {
		return newOneShot(p, req.Home), nil
	}
	if !slices.Contains(p.Modes(), mode) {
		return nil, cli.Failf(cli.UnknownFailure, agent, "mode %q is not supported", mode)
	}
	s := newLive(p, req)
	if err := s.start(ctx, req); err != nil {
		return nil, err
	}
	return s, nil
}

// launch starts Claude for req; whoever gets the process stops it. mode is empty for a probe. Errors are
// *cli.Failure.
func (p *Provider) launch(ctx context.Context, f format, mode cli.Mode, req cli.Request) (*process, error) {
	files, err := writePrompts(p.opts.PromptDir, req)
	if err != nil {
		return nil, cli.AsFailure(agent, err)
	}
	args, err := p.arguments(f, req, files)
	if err != nil {
		p.discard(files)
		return nil, cli.Failf(cli.Refused, agent, "%v", err)
	}
	kept := p.settingOf(f, req)
	kept.Files = files.name()
	cmd := cli.Command{
		Path: p.opts.Path, Args: args, Files: files.paths(), Dir: req.Dir, Env: p.environment(req),
		For: cli.Purpose{Agent: agent, Mode: mode, Conversation: req.Conversation, Setting: kept.String()},
	}
	if mode == cli.OneShot {
		cmd.Turn = req.Turn
	}
	proc, err := p.opts.Launcher.Start(ctx, cmd)
	if err == nil {
		return newProcess(proc, files), nil
	}
	p.discard(files)
	return nil, cli.StartFailure(agent, err)
}

// discard removes files that no process will read.
func (p *Provider) discard(files promptFiles) {
	if err := files.remove(); err != nil {
		p.opts.Logger.Warn("claude was not started", "err", err)
	}
}
