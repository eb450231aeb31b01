package acp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// Auth implements cli.Provider. It calls Options.Auth. If that is nil, Auth checks the log-in by opening a session.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	if p.opts.Auth != nil {
		return p.opts.Auth(ctx)
	}
	path, err := p.opts.Launcher.LookPath(p.opts.Path)
	if err != nil {
		install := p.opts.known.HowToInstall(p.opts.Agent)
		return cli.Auth{
			State: cli.NotFound, Path: p.opts.Path, Fix: turn.Missing(p.opts.ProviderOptions, p.opts.Agent, install),
		}
	}
	auth := cli.Auth{State: cli.Authenticated, Path: path}
	s, err := p.probe(ctx)
	if err != nil {
		auth.State = cli.Installed
		if f := p.opts.failure(err); f.Kind == cli.NotLoggedIn {
			auth.Fix = cmp.Or(f.Why().String(), f.Error())
			if run := p.opts.known.Login; run != "" && !strings.Contains(auth.Fix, run) {
				auth.Fix = strings.TrimSuffix(auth.Fix, ".") + ". Run " + run + "."
			}
		} else {
			auth.Problem = f
		}
		return auth
	}
	auth.Version = s.process.hello.AgentInfo.Version
	if err := s.endProbe(ctx); err != nil {
		p.opts.Logger.Error("end an agent that was asked for its log-in", "agent", string(p.opts.Agent), "err", err)
	}
	return auth
}

// Models implements cli.Provider. It returns Options.Models, or else the models that the agent offers in a new session.
func (p *Provider) Models(ctx context.Context) ([]cli.Model, error) {
	if len(p.opts.Models) > 0 {
		return slices.Clone(p.opts.Models), nil
	}
	s, err := p.probe(ctx)
	if err != nil {
		return nil, err
	}
	offered := s.offersNow().model
	if err := s.endProbe(ctx); err != nil {
		return nil, err
	}
	if len(offered.values) > maxValues {
		return nil, cli.Failf(cli.BadOutput, p.opts.Agent, "failure.many-models", maxValues)
	}
	var list []cli.Model
	for _, m := range offered.values {
		one := cli.Model{
			Agent: p.opts.Agent, ID: cli.ModelID(m.ID), Name: m.Name, Description: m.Description,
			Default: m.ID == offered.original,
		}
		if known, ok := p.efforts.Load(m.ID); ok {
			for _, e := range known.(choice).values {
				one.Efforts = append(one.Efforts, cli.Effort(e.ID))
			}
			one.DefaultEffort = cli.Effort(known.(choice).original)
		}
		list = append(list, one)
	}
	if list == nil { // the agent chooses its model itself
		list = []cli.Model{{Agent: p.opts.Agent, Name: "its own choice", Default: true}}
	}
	return list, nil
}

// endProbe closes a session that was opened only to query the agent, and deletes the session if the agent supports
// that.
func (s *session) endProbe(ctx context.Context) error {
	if s.process.hello.Capabilities.Session.Delete != nil {
		_ = s.process.call(ctx, methodDelete, sessionParams{SessionID: string(s.id)}, nil) // best effort
	}
	return s.live.Close(context.WithoutCancel(ctx))
}

// private starts a process that serves only the caller. The caller must stop it. Errors are *cli.Failure.
func (p *Provider) private(ctx context.Context, req cli.Request) (*agentProcess, error) {
	if err := p.opts.checkProject(req); err != nil {
		return nil, err
	}
	cmd, err := p.opts.command(req, "")
	if err != nil {
		return nil, err
	}
	cmd.For.Mode = "" // ductor does not reattach to this process after a restart
	proc, err := p.pool.Private(ctx, cmd)
	if err != nil {
		return nil, p.opts.failure(err)
	}
	return proc, nil
}

// probe opens a session in a separate process, only to query the agent.
func (p *Provider) probe(ctx context.Context) (*session, error) {
	var opened *session
	join := func(ctx context.Context, s *shared.Session[news], req cli.Request) (shared.AgentSession[news], error) {
		proc, err := p.private(ctx, req)
		if err != nil {
			return nil, err
		}
		opened = newSession(proc, s, req)
		return opened, nil
	}
	err := shared.NewSession(p.pool, &shared.Dialect[news]{Join: join}).Open(ctx, cli.Request{Dir: p.opts.StartDir})
	return opened, err
}
