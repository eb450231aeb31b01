package codex

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"ductor/cli"
)

// session is a thread of Codex. Each turn is a process of its own.
type session struct {
	provider *Provider

	mu     sync.Mutex
	thread cli.AgentSessionID
	stream *cli.Stream // of the turn that runs
	pid    int
	closed bool
}

// Fits is true for the same thread: everything else is said anew with each turn.
func (s *session) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && req.Resume == s.thread
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

// Turn runs `codex exec` once.
func (s *session) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	p := s.provider
	out := cli.NewEmitter(Agent, p.opts.Now, emit)
	s.mu.Lock()
	if req.Resume == "" {
		req.Resume = s.thread
	}
	s.mu.Unlock()
	parser := &parser{
		out: out, dir: req.Dir, resume: req.Resume, model: req.Model, now: p.opts.Now,
		sandbox: sandboxOf(req.Permission, p.opts.Sandbox), patience: p.opts.Patience,
	}
	if ctx.Err() != nil {
		out.Finish(cancelled(ctx))
		return
	}
	stream, process, err := s.start(ctx, req)
	if err != nil {
		out.Finish(cli.Result{Err: p.startFailure(err)})
		return
	}
	end := stream.Turn(ctx, cli.TurnLoop{Handle: parser.line, Interrupt: process.Interrupt, Busy: func() bool { return out.OpenTools() > 0 }})
	result := parser.result(ctx, end, process)
	closeErr := stream.Close(context.WithoutCancel(ctx))
	if closeErr != nil && result.Err == nil {
		result.Err = cli.AsFailure(Agent, closeErr)
	}
	s.ended(parser.thread)
	if parser.done {
		result.Usage = p.used(parser.thread, req.Resume, parser.usage)
	}
	out.Finish(result)
}

func (s *session) start(ctx context.Context, req cli.Request) (*cli.Stream, cli.Process, error) {
	p := s.provider
	process, err := p.opts.Launcher.Start(ctx, cli.Command{
		Path: p.opts.Path, Args: append(p.opts.PathArgs[:len(p.opts.PathArgs):len(p.opts.PathArgs)], argv(req, p.opts.Sandbox)...),
		Dir: req.Dir, Env: p.env(req),
	})
	if err != nil {
		return nil, nil, err
	}
	stream := cli.NewStream(process, p.opts.Stream)
	s.mu.Lock()
	s.stream, s.pid = stream, process.PID()
	s.mu.Unlock()
	go writePrompt(process.Stdin(), promptOf(req))
	return stream, process, nil
}

// writePrompt ends with the process at the latest: a write to a dead program fails.
func writePrompt(stdin io.WriteCloser, prompt string) {
	// What goes wrong here shows as the end of the turn.
	_, _ = io.WriteString(stdin, prompt)
	_ = stdin.Close()
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

// result says how the turn ended.
func (p *parser) result(ctx context.Context, end cli.End, process cli.Process) cli.Result {
	r := cli.Result{Denials: append(p.denials, deniedPatches(process.StderrTail())...)}
	p.release(answers)
	switch {
	case p.done:
	case p.failure != nil:
		r.Err = p.failure
	case end == cli.EndCancelled:
		return cancelled(ctx)
	case end == cli.EndStalled:
		r.Err = cli.Failf(cli.TimedOut, Agent, "it said nothing for a long time")
	default:
		r.Err = p.exitFailure(process)
	}
	return r
}

// exitFailure explains an end without turn.completed or turn.failed.
func (p *parser) exitFailure(process cli.Process) *cli.Failure {
	stderr := process.StderrTail()
	if p.thread == "" && p.resume != "" && kindOf(stderr) == cli.ResumeFailed {
		return &cli.Failure{Kind: cli.ResumeFailed, Agent: Agent, Detail: stderr}
	}
	f := &cli.Failure{Kind: cli.Crashed, Agent: Agent, Code: process.Exit().Code, Detail: stderr}
	if p.garbage != "" {
		f.Kind, f.Reason = cli.BadOutput, p.garbage
	} else if kind := kindOf(stderr); kind == cli.NotLoggedIn {
		f.Kind = kind
	}
	return f
}

func cancelled(ctx context.Context) cli.Result {
	if errors.Is(context.Cause(ctx), cli.ErrAborted) {
		return cli.Result{Aborted: true}
	}
	return cli.Result{Err: &cli.Failure{Kind: cli.TimedOut, Agent: Agent, Cause: context.Cause(ctx)}}
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
