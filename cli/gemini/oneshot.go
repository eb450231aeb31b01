package gemini

import (
	"context"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"

	"ductor/cli"
)

// oneShot is a session that starts a process per turn.
type oneShot struct {
	provider *Provider
	home     string // where the session is kept

	mu      sync.Mutex
	id      cli.AgentSessionID
	stream  *cli.Stream // of the turn that runs, or of one that is to be gone on with
	left    *cli.LeftRun
	closed  bool
	running sync.WaitGroup
}

var _ cli.Session = (*oneShot)(nil)

func newOneShot(p *Provider, home string) *oneShot { return &oneShot{provider: p, home: home} }

// adoptOneShot takes over the process of a turn.
func (p *Provider) adoptOneShot(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "a one-shot run is for one turn")
	}
	process, err := p.opts.Launcher.Attach(ctx, left.Run, 0)
	if err != nil {
		return nil, cli.AsFailure(Agent, err)
	}
	s := newOneShot(p, req.Home)
	s.left = &left
	if err := s.enter(s.listen(process, &cli.Past{Until: left.OutputEnd})); err != nil {
		return nil, err
	}
	return s, nil
}

// Turn runs one prompt in a process of its own; see cli.Session.
func (s *oneShot) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := cli.NewEmitter(Agent, s.provider.opts.Now, emit)
	stream, left := s.adopted()
	if stream == nil {
		if err := checkPrompt(req); err != nil {
			out.Finish(cli.Result{Err: err})
			return
		}
		if ctx.Err() != nil {
			out.Finish(cli.Cut(ctx, Agent))
			return
		}
		if req.Resume == "" {
			req.Resume = s.sessionID()
		}
		var err error
		if stream, err = s.start(ctx, req); err != nil {
			out.Finish(failedStart(ctx, s.provider, err))
			return
		}
	} else {
		out.Past(stream.Clock(s.provider.opts.Now))
	}
	p := newParser(out, req)
	p.garbage = stream.Garbage
	end := s.loop(ctx, stream, p, left, []byte(promptOf(req)))
	s.ended(ctx, stream, p, end)
	out.Finish(p.finish(ctx, stream, end, req))
}

func failedStart(ctx context.Context, p *Provider, err error) cli.Result {
	if ctx.Err() != nil {
		return cli.Cut(ctx, Agent)
	}
	return cli.Result{Err: p.startFailure(err)}
}

func checkPrompt(req cli.Request) *cli.Failure {
	switch {
	case len(req.Images) > 0:
		return cli.Failf(cli.Refused, Agent, "one-shot it takes no pictures; they need its live mode")
	case strings.TrimSpace(req.Prompt) == "":
		return cli.Failf(cli.Refused, Agent, "the message is empty")
	case !utf8.ValidString(req.Prompt):
		return cli.Failf(cli.Refused, Agent, "the message holds bytes that are no text")
	}
	return nil
}

// loop takes the turn to its end; left is what is known of one that is gone on with.
func (s *oneShot) loop(ctx context.Context, stream *cli.Stream, p *parser, left cli.LeftRun, input []byte) cli.End {
	return stream.Turn(ctx, cli.TurnLoop{
		Begin: func() {
			// What cannot be written shows as the end of the turn.
			if rest := input[min(left.InputEnd, int64(len(input))):]; len(rest) > 0 && !left.InputClosed {
				_ = stream.Send(rest)
			}
			stream.CloseInput() // Gemini waits for the end of its input before it begins
		},
		Handle:    p.line,
		Interrupt: stream.Process().Interrupt,
		Out:       p.out,
	})
}

func (s *oneShot) start(ctx context.Context, req cli.Request) (*cli.Stream, error) {
	if err := s.provider.guard(req); err != nil {
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
		return nil, err
	}
	stream := s.listen(process, nil)
	if err := s.enter(stream); err != nil {
		return nil, errors.Join(err, stream.Close(context.WithoutCancel(ctx)))
	}
	return stream, nil
}

func (s *oneShot) listen(process cli.Process, past *cli.Past) *cli.Stream {
	o := s.provider.opts
	return cli.NewStream(process, cli.StreamOptions{
		Agent: Agent, Stall: o.Stall, ToolStall: o.ToolStall, Grace: o.Grace, Past: past,
	})
}

// enter makes stream the one that runs.
func (s *oneShot) enter(stream *cli.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return cli.Failf(cli.UnknownFailure, Agent, "the session is closed")
	}
	s.stream = stream
	s.running.Add(1)
	return nil
}

// adopted gives the turn to go on with, once; nil if there is none.
func (s *oneShot) adopted() (*cli.Stream, cli.LeftRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == nil {
		return nil, cli.LeftRun{}
	}
	left := *s.left
	s.left = nil
	return s.stream, left
}

// ended lets a process that said its result write down its session and go, and makes it go if it does not.
func (s *oneShot) ended(ctx context.Context, stream *cli.Stream, p *parser, end cli.End) {
	defer s.running.Done()
	if end == cli.EndDetached {
		return
	}
	if p.done {
		limit, cancel := context.WithTimeout(ctx, s.provider.opts.Grace)
		defer cancel()
		select {
		case <-stream.Process().Done():
		case <-limit.Done():
		}
	}
	err := stream.Close(context.WithoutCancel(ctx))
	if err != nil {
		s.provider.opts.Logger.Error("gemini did not end", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil { // else Close tries again, and tells its caller
		s.stream = nil
	}
	if p.session != "" {
		s.id = p.session
	}
}

// finish says how the turn ended: by Gemini's own result if there is one.
func (p *parser) finish(ctx context.Context, stream *cli.Stream, end cli.End, req cli.Request) cli.Result {
	r := p.result
	if !p.done || r.Err != nil && (end == cli.EndCancelled || end == cli.EndStalled) {
		r = stream.Outcome(ctx, end)
	}
	if r.Err != nil && r.Err.Kind == cli.Crashed && !p.done {
		if kind := exitKind(r.Err.Code, r.Err.Detail, req.Resume != "" || req.Continue); kind != "" {
			r.Err.Kind = kind
		}
		if r.Err.Kind == cli.NotLoggedIn {
			r.Err.Reason = loginFix
		}
	}
	r.Denials = p.denials
	return r
}

func (s *oneShot) sessionID() cli.AgentSessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Fits is true as long as the session is the one req goes on with, in the same home: everything else is per process.
func (s *oneShot) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && req.Home == s.home && (s.id == "" || req.Resume == s.id)
}

// Info says what is running. A one-shot session never has a process that could take another turn.
func (s *oneShot) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: Agent, Mode: cli.OneShot, AgentSessionID: s.id}
	if s.stream != nil {
		info.PID = s.stream.Process().PID()
	}
	return info
}

// Close ends the process of a turn that runs, with all it started, and waits for that turn.
func (s *oneShot) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	stream := s.stream
	s.mu.Unlock()
	if stream == nil {
		return nil
	}
	err := stream.Close(ctx)
	s.dropAdopted()
	gone := make(chan struct{})
	go func() { s.running.Wait(); close(gone) }()
	select {
	case <-gone:
		return err
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
}

// Detach lets go of a turn that was adopted and not gone on with; otherwise nothing runs between turns.
func (s *oneShot) Detach() {
	s.mu.Lock()
	s.closed = true
	stream := s.stream
	s.mu.Unlock()
	if stream != nil {
		stream.Detach()
	}
	s.dropAdopted()
}

func (s *oneShot) dropAdopted() {
	if stream, _ := s.adopted(); stream != nil {
		s.running.Done()
	}
}
