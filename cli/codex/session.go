package codex

import (
	"cmp"
	"context"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// session is a thread of Codex. Each turn is a process of its own.
type session struct {
	*turn.OneShotSession
	provider *Provider
}

func (p *Provider) newSession(req cli.Request) *session {
	s := &session{OneShotSession: turn.NewOneShotSession(Agent, req.Home), provider: p}
	s.Named(req.Resume)
	return s
}

// Turn runs `codex exec` once, or goes on with the run that was adopted.
func (s *session) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := turn.NewEmitter(Agent, s.provider.opts.Now, emit)
	stream, left, ok := s.Open(ctx, out, func() (*turn.Stream, error) {
		req.Resume = cmp.Or(req.Resume, s.Info().AgentSessionID)
		return s.start(ctx, req)
	})
	if !ok {
		return
	}
	parser := s.provider.parser(out, req)
	parser.garbage, parser.now = stream.Garbage, stream.Clock(s.provider.opts.Now)
	if left != nil {
		out.Past(parser.now)
	}
	before := s.provider.before(req, left)
	end := stream.Turn(ctx, turn.Loop[[]byte]{
		Begin: func() {
			_ = stream.SendOnly([]byte(promptOf(req)), left) // what cannot be written shows as the end of the turn
		},
		Handle:    parser.line,
		Interrupt: stream.Process().Interrupt,
		Out:       out,
		Mark:      before.mark(req.Turn, left),
	})
	result := parser.result(ctx, end, streamExit{stream})
	if err := s.End(ctx, stream, end); err != nil && result.Err == nil && !result.Aborted {
		result.Err = cli.AsFailure(Agent, err)
	}
	s.Named(parser.thread)
	if parser.done && !result.Detached {
		result.Usage = s.provider.used(parser.thread, before, parser.usage)
	}
	out.Finish(result)
}

// start starts the process of a turn.
func (s *session) start(ctx context.Context, req cli.Request) (*turn.Stream, error) {
	p := s.provider
	process, err := p.opts.Launcher.Start(ctx, cli.Command{
		Path: p.opts.Path, Args: argv(req, p.opts.Sandbox), Dir: req.Dir, Env: p.env(req),
		For:  cli.Purpose{Agent: Agent, Mode: cli.OneShot, Conversation: req.Conversation},
		Turn: req.Turn,
	})
	if err != nil {
		return nil, cli.StartFailure(Agent, err)
	}
	return s.Begin(ctx, process, turn.StreamOptionsOf(p.opts.ProviderOptions, Agent))
}

// promptOf merges the system prompts in: exec has no flag for them.
func promptOf(req cli.Request) string {
	return req.Instructions() + req.Prompt
}

// exit is what the end of a process tells.
type exit interface {
	Stderr() string
	Outcome(end turn.End) cli.Result
}

type streamExit struct{ *turn.Stream }

func (s streamExit) Stderr() string { return s.Process().StderrTail() }

// result says how the turn ended. A turn that Codex itself completed went well, however it was ended since.
func (p *parser) result(ctx context.Context, end turn.End, exit exit) cli.Result {
	p.release(answers)
	stderr := exit.Stderr()
	r := cli.Result{}
	switch {
	case p.done:
	case p.failure != nil:
		r.Err = p.failure
	case end == turn.EndExit && p.thread == "" && kindOf(stderr) == cli.ResumeFailed:
		r.Err = &cli.Failure{Kind: cli.ResumeFailed, Agent: Agent, Detail: stderr}
	case end == turn.EndExit && kindOf(stderr) == cli.NotLoggedIn:
		r.Err = &cli.Failure{Kind: cli.NotLoggedIn, Agent: Agent, Detail: stderr}
	default:
		r = exit.Outcome(end)
	}
	r.Denials = append(p.denials, deniedPatches(stderr)...)
	return r
}

// deniedPatches finds the patches that the sandbox refused: only the log says so.
func deniedPatches(stderr string) []cli.Denial {
	var denials []cli.Denial
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "patch rejected") {
			denials = append(denials, cli.Denial{Tool: "patch", Reason: denialReason})
		}
	}
	return denials
}
