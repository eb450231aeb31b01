package gemini

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"ductor/cli"
	"ductor/cli/turn"
)

// oneShot is a session that starts a process per turn.
type oneShot struct {
	*turn.OneShotSession
	provider *Provider
}

var _ cli.Session = (*oneShot)(nil)

func newOneShot(p *Provider, home string) *oneShot {
	return &oneShot{OneShotSession: turn.NewOneShotSession(Agent, home), provider: p}
}

// adoptOneShot takes over the process of a turn.
func (p *Provider) adoptOneShot(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	s := newOneShot(p, req.Home)
	return s, s.Attach(ctx, p.opts.ProviderOptions, left, req, nil)
}

// Turn runs one prompt in a process of its own; see cli.Session.
func (s *oneShot) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := turn.NewEmitter(Agent, s.provider.opts.Now, emit)
	stream, left, ok := s.Open(ctx, out, func() (*turn.Stream, error) {
		if f := checkPrompt(req); f != nil {
			return nil, f
		}
		req.Resume = cmp.Or(req.Resume, s.Info().AgentSessionID)
		return s.start(ctx, req)
	})
	if !ok {
		return
	}
	if left != nil {
		out.Past(stream.Clock(s.provider.opts.Now))
	}
	p := newParser(out, req)
	p.garbage = stream.Garbage
	end := s.loop(ctx, stream, p, left, []byte(promptOf(req)))
	s.ended(ctx, stream, p, end)
	out.Finish(p.finish(ctx, stream, end, req))
}

func checkPrompt(req cli.Request) *cli.Failure {
	switch {
	case req.Task != cli.TaskPrompt:
		return cli.CannotCompact(Agent)
	case req.Project == cli.WithoutProject:
		return cli.Failf(cli.Refused, Agent, "one-shot it runs here only with the settings of this project, which are not allowed; its live mode runs without them")
	case len(req.Images) > 0:
		return cli.Failf(cli.Refused, Agent, "one-shot it takes no pictures; they need its live mode")
	case strings.TrimSpace(req.Prompt) == "":
		return cli.Failf(cli.Refused, Agent, "the message is empty")
	case !utf8.ValidString(req.Prompt):
		return cli.Failf(cli.Refused, Agent, "the message holds bytes that are no text")
	}
	return nil
}

// loop takes the turn to its end; left is what is known of a turn that is resumed, nil for a new one.
func (s *oneShot) loop(ctx context.Context, stream *turn.Stream, p *parser, left *cli.LeftRun, input []byte) turn.End {
	return stream.Turn(ctx, turn.Loop[[]byte]{
		Begin: func() {
			// Gemini waits for the end of its input before it begins. What cannot be written shows as the end of the turn.
			_ = stream.SendOnly(input, left)
		},
		Handle:    p.line,
		Interrupt: stream.Process().Interrupt,
		Out:       p.out,
	})
}

func (s *oneShot) start(ctx context.Context, req cli.Request) (*turn.Stream, error) {
	if err := s.provider.guard(ctx, req); err != nil {
		return nil, err
	}
	args, err := s.provider.argv(req)
	if err != nil {
		return nil, err
	}
	process, err := s.provider.opts.Launcher.Start(ctx, cli.Command{
		Path: s.provider.opts.Path, Args: args, Files: s.provider.ownFiles(args), Dir: req.Dir, Env: s.provider.env(req), Turn: req.Turn,
		For: cli.Purpose{Agent: Agent, Mode: cli.OneShot, Conversation: req.Conversation},
	})
	if err != nil {
		return nil, cli.StartFailure(Agent, err)
	}
	return s.Begin(ctx, process, turn.StreamOptionsOf(s.provider.opts.ProviderOptions, Agent))
}

// ended lets a process that said its result write down its session and go, and makes it go if it does not.
func (s *oneShot) ended(ctx context.Context, stream *turn.Stream, p *parser, end turn.End) {
	if end != turn.EndDetached {
		s.Named(p.session)
		if p.done {
			stream.Linger(ctx)
		}
	}
	if err := s.End(ctx, stream, end); err != nil {
		s.provider.opts.Logger.Error("gemini did not end", "err", err)
	}
}

// finish says how the turn ended: by Gemini's own result if there is one.
func (p *parser) finish(ctx context.Context, stream *turn.Stream, end turn.End, req cli.Request) cli.Result {
	r := p.result
	if !p.done || r.Err != nil && (end == turn.EndCancelled || end == turn.EndStalled) {
		r = stream.Outcome(end)
	}
	if r.Err != nil && r.Err.Kind == cli.Crashed && !p.done {
		if kind := exitKind(r.Err.Code, r.Err.Detail, req.Resume != ""); kind != "" {
			r.Err.Kind = kind
		}
		if r.Err.Kind == cli.NotLoggedIn {
			r.Err.Reason = loginFix
		}
	}
	r.Denials = p.denials
	return r
}
