package copilot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/rpc"
)

// viaServer names the protocol of the SDK server, for people.
const viaServer = "SDK server"

// errNoServer says that this Copilot has no SDK server, or one that speaks another version of its protocol.
var errNoServer = errors.New("this Copilot has no server that ductor can speak with")

// refusal sorts why a server did not shake hands: one that is not there is told from one that failed.
func refusal(err error) error {
	var refused *rpc.Error
	var f *cli.Failure
	if errors.As(err, &refused) || errors.As(err, &f) && f.Kind == cli.Refused && strings.Contains(f.Detail, "--headless") {
		return fmt.Errorf("%w: %w", errNoServer, err)
	}
	return err
}

// openLive opens a session in the server, or over ACP where there is none: that has no way to steer, to ask
// questions or to list models, and its errors are told from answers by their looks.
func (p *Provider) openLive(ctx context.Context, req cli.Request) (cli.Session, error) {
	var refused error
	if !p.noServer.Load() {
		s := newLive(p, req)
		if refused = s.open(ctx, req); refused == nil {
			return s, nil
		}
		if !errors.Is(refused, errNoServer) {
			return nil, cli.AsFailure(Agent, refused)
		}
	}
	s, err := p.acp.Open(ctx, cli.Live, forACP(req))
	switch {
	case err == nil:
		if !p.noServer.Swap(true) {
			p.opts.Logger.Warn("copilot has no server that ductor can speak with: it is spoken to over ACP", "err", refused)
		}
	case refused != nil: // it has neither: what was wanted first says more
		return nil, cli.AsFailure(Agent, refused)
	}
	return wrapped(s, err)
}

// via says how live sessions speak, after the server was asked something.
func (p *Provider) via(err error) string {
	if errors.Is(err, errNoServer) {
		p.noServer.Store(true)
	}
	if p.noServer.Load() {
		return acp.Via
	}
	return viaServer
}

// overACP is Copilot as an agent of the Agent Client Protocol.
func (p *Provider) overACP() *acp.Provider {
	return acp.New(acp.Options{
		ProviderOptions: p.opts.Allowing(EnvKeys()...),
		Agent:           Agent, Args: []string{"--acp", "--no-auto-update"},
		ExtraEnv: func(cli.Request) map[string]string { return p.ownEnv() }, HomeVars: homeVars(),
		NoFiles: true, NoTerminals: true, // it has tools of its own for both, and they ask
		Quirks: acp.Quirks{KindOf: func(_ int, text string) cli.FailureKind { return textKind(text) }},
		Login:  loginFix, Auth: p.Auth,
	})
}

// forACP is req as a process that speaks ACP takes it: what the protocol has no call for binds the process, by its
// command line.
func forACP(req cli.Request) cli.Request {
	var args []string
	args = value(args, "--model", string(req.Model))
	args = value(args, "--reasoning-effort", string(req.Effort))
	args = value(args, "--available-tools", strings.Join(req.Tools, ","))
	for _, tool := range req.AllowedTools {
		args = value(args, "--allow-tool", tool)
	}
	for _, tool := range req.DeniedTools {
		args = value(args, "--deny-tool", tool)
	}
	for _, dir := range req.AddDirs {
		args = value(args, "--add-dir", dir)
	}
	req.ExtraArgs = append(args, req.ExtraArgs...)
	req.Model, req.Tools, req.AllowedTools, req.DeniedTools = "", nil, nil, nil
	return req
}

// acpSession is a session over ACP that is told requests as forACP makes them.
type acpSession struct {
	cli.Session
	cli.Decider
}

// wrapped puts what acp.Provider gave behind forACP.
func wrapped(s cli.Session, err error) (cli.Session, error) {
	if err != nil {
		return nil, err
	}
	decider, ok := s.(cli.Decider)
	if !ok {
		return nil, errors.Join(cli.Failf(cli.UnknownFailure, Agent, "its sessions cannot ask"), s.Close(context.Background()))
	}
	return acpSession{s, decider}, nil
}

// Turn runs one prompt; see cli.Session.
func (s acpSession) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	s.Session.Turn(ctx, forACP(req), emit)
}

// Fits says whether the session can take req as it is.
func (s acpSession) Fits(req cli.Request) bool { return s.Session.Fits(forACP(req)) }
