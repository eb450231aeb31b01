package codex

import (
	"context"
	"strings"
	"sync"

	"ductor/cli"
)

// session is a thread of Codex. Each turn is a process of its own.
type session struct {
	provider *Provider
	home     string // where the thread is kept

	mu     sync.Mutex
	thread cli.AgentSessionID
	stream *cli.Stream  // of the turn that runs, or that was adopted
	left   *cli.LeftRun // what was adopted, until its Turn is called
	pid    int
	closed bool
}

// Fits is true for the same thread in the same home: everything else is said anew with each turn.
func (s *session) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && req.Home == s.home && req.Resume == s.thread
}

// Info names the thread, and the process while a turn runs.
func (s *session) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cli.SessionInfo{Agent: Agent, Mode: cli.OneShot, AgentSessionID: s.thread, PID: s.pid, Alive: !s.closed}
}

// Close ends a turn that still runs, with everything it started.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	stream := s.stream
	s.mu.Unlock()
	if stream == nil {
		return nil
	}
	return stream.Close(ctx)
}

// Detach lets go of a turn that was adopted and not gone on with.
func (s *session) Detach() {
	s.mu.Lock()
	s.closed = true
	stream := s.stream
	s.mu.Unlock()
	if stream != nil {
		stream.Detach()
	}
}

// Turn runs `codex exec` once, or goes on with the run that was adopted.
func (s *session) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := cli.NewEmitter(Agent, s.provider.opts.Now, emit)
	left := s.takeLeft()
	if req.Resume == "" && left == nil {
		req.Resume = s.Info().AgentSessionID
	}
	if ctx.Err() != nil && left == nil {
		out.Finish(cli.Cut(ctx, Agent))
		return
	}
	stream, err := s.start(ctx, req, left)
	if err != nil {
		out.Finish(cli.Result{Err: s.provider.startFailure(err)})
		return
	}
	parser := s.provider.parser(out, req)
	parser.garbage, parser.now = stream.Garbage, stream.Clock(s.provider.opts.Now)
	if left != nil {
		out.Past(parser.now)
	}
	before := s.provider.before(req, left)
	end := stream.Turn(ctx, cli.TurnLoop{
		Begin:     func() { sendPrompt(stream, promptOf(req), left) },
		Handle:    parser.line,
		Interrupt: stream.Process().Interrupt,
		Out:       out,
		Mark:      before.mark(req.Turn, left),
	})
	result := parser.result(ctx, end, streamExit{stream})
	if result.Detached {
		s.ended(parser.thread)
		out.Finish(result)
		return
	}
	closeErr := stream.Close(context.WithoutCancel(ctx))
	if closeErr != nil && result.Err == nil && !result.Aborted {
		result.Err = cli.AsFailure(Agent, closeErr)
	}
	s.ended(parser.thread)
	if parser.done {
		result.Usage = s.provider.used(parser.thread, before, parser.usage)
	}
	out.Finish(result)
}

// start starts the process of a turn; the one that was adopted is there already.
func (s *session) start(ctx context.Context, req cli.Request, left *cli.LeftRun) (*cli.Stream, error) {
	if left != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.stream, nil
	}
	p := s.provider
	process, err := p.opts.Launcher.Start(ctx, cli.Command{
		Path: p.opts.Path, Args: argv(req, p.opts.Sandbox), Dir: req.Dir, Env: p.env(req),
		For:  cli.Purpose{Agent: Agent, Mode: cli.OneShot, Conversation: req.Conversation},
		Turn: req.Turn,
	})
	if err != nil {
		return nil, err
	}
	stream := cli.NewStream(process, p.streamOptions())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.pid = stream, process.PID()
	return stream, nil
}

func (p *Provider) streamOptions() cli.StreamOptions {
	return cli.StreamOptions{Agent: Agent, Stall: p.opts.Stall, ToolStall: p.opts.ToolStall, Grace: p.opts.Grace}
}

func (s *session) takeLeft() *cli.LeftRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left
	s.left = nil
	return left
}

// sendPrompt writes the prompt and ends the input. Of a turn that is gone on with, only what is not there yet.
func sendPrompt(stream *cli.Stream, prompt string, left *cli.LeftRun) {
	rest := []byte(prompt)
	if left != nil {
		if left.InputClosed {
			return
		}
		rest = rest[min(left.InputEnd, int64(len(rest))):]
	}
	if len(rest) > 0 {
		_ = stream.Send(rest) // a prompt that cannot be written shows as the end of the turn
	}
	stream.CloseInput()
}

// promptOf merges the system prompts in: exec has no flag for them.
func promptOf(req cli.Request) string {
	var parts []string
	for _, part := range []string{req.SystemPrompt, req.AppendPrompt} {
		if part != "" {
			parts = append(parts, "<instructions>\n"+part+"\n</instructions>")
		}
	}
	return strings.Join(append(parts, req.Prompt), "\n\n")
}

func (s *session) ended(thread cli.AgentSessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.pid = nil, 0
	if thread != "" {
		s.thread = thread
	}
}

// exit is what the end of a process tells.
type exit interface {
	Stderr() string
	Outcome(ctx context.Context, end cli.End) cli.Result
}

type streamExit struct{ *cli.Stream }

func (s streamExit) Stderr() string { return s.Process().StderrTail() }

// result says how the turn ended. A turn that Codex itself completed went well, however it was ended since.
func (p *parser) result(ctx context.Context, end cli.End, exit exit) cli.Result {
	p.release(answers)
	stderr := exit.Stderr()
	r := cli.Result{}
	switch {
	case p.done:
	case p.failure != nil:
		r.Err = p.failure
	case end == cli.EndExit && p.thread == "" && kindOf(stderr) == cli.ResumeFailed:
		r.Err = &cli.Failure{Kind: cli.ResumeFailed, Agent: Agent, Detail: stderr}
	case end == cli.EndExit && kindOf(stderr) == cli.NotLoggedIn:
		r.Err = &cli.Failure{Kind: cli.NotLoggedIn, Agent: Agent, Detail: stderr}
	default:
		r = exit.Outcome(ctx, end)
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
