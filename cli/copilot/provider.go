package copilot

import (
	"context"

	"ductor/cli"
	"ductor/cli/frames"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

// Agent is the name of this agent.
const Agent cli.Agent = "copilot"

// Options configures a Provider. Only Launcher is required.
type Options struct{ cli.ProviderOptions }

// Provider implements cli.Provider for Copilot. Safe for concurrent use.
type Provider struct {
	opts Options
	pool *shared.Pool[*server]
	live shared.Dialect[news]
}

var (
	_ cli.Provider   = (*Provider)(nil)
	_ cli.Limited    = (*Provider)(nil)
	_ cli.ToolHolder = (*Provider)(nil)
)

// New returns a Provider. It starts no process.
func New(o Options) *Provider {
	o.ProviderOptions = o.OrDefault("copilot")
	p := &Provider{opts: o}
	p.pool = shared.NewPool(shared.Options{
		ProviderOptions: o.ProviderOptions, Agent: Agent, Framing: frames.ContentLength, Codec: rpc.JSON{Version: "2.0"},
	}, p.newServer)
	// Copilot may react to an abort only at the end of the turn. ductor therefore waits for the whole grace period.
	p.live = shared.Dialect[news]{Join: p.join, Prompt: "send-", Interrupt: o.Grace}
	return p
}

// Agent implements cli.Provider.
func (p *Provider) Agent() cli.Agent { return Agent }

// Modes implements cli.Provider.
func (p *Provider) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }

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
	return nil, cli.Failf(cli.UnknownFailure, Agent, "failure.no-mode", mode)
}

// Adopt implements cli.Provider.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.once().Adopt(ctx, left, req)
	}
	return p.adoptLive(ctx, left, req)
}

// ProjectFiles implements cli.ProjectReader. Copilot also reads the files of some other agents.
func (p *Provider) ProjectFiles() []string {
	return []string{
		".github/hooks/", ".github/copilot/", ".github/mcp.json", ".github/mcp-config.json", ".github/lsp.json",
		".github/agents/", ".github/skills/", ".github/plugins/", ".copilot/", ".agents/", ".mcp.json", ".vscode/mcp.json",
		".claude/settings.json", ".claude/settings.local.json", ".claude/agents/", ".claude/commands/", ".claude/skills/",
	}
}
