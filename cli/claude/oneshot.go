package claude

import (
	"context"
	"errors"
	"maps"
	"sync"

	"ductor/cli"
)

// oneShot is a session that starts a process per turn.
type oneShot struct {
	provider *Provider
	home     string // where the session is kept

	mu      sync.Mutex
	id      cli.AgentSessionID
	stream  *cli.Stream // of the turn that runs; nil between turns
	left    *leftShot   // the turn to go on with; nil for none, and once it runs
	closed  bool
	running sync.WaitGroup
}

var _ cli.Session = (*oneShot)(nil)

func newOneShot(p *Provider, home string) *oneShot { return &oneShot{provider: p, home: home} }

// Turn runs one prompt in a process of its own; see cli.Session. It returns when that process is gone,
// which is a moment after the result.
func (s *oneShot) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	em := cli.NewEmitter(agent, s.provider.opts.Now, s.watch(emit))
	if left := s.takeLeft(); left != nil {
		s.goOn(ctx, left, req, em)
		return
	}
	if err := checkPrompt(req); err != nil {
		em.Finish(cli.Result{Err: cli.AsFailure(agent, err)})
		return
	}
	if req.Resume == "" {
		req.Resume = s.sessionID()
	}
	f := s.format(req)
	input, err := oneShotInput(f, req)
	if err != nil {
		em.Finish(cli.Result{Err: cli.Failf(cli.Refused, agent, "%v", err)})
		return
	}
	stream, err := s.start(ctx, f, req)
	if err != nil {
		em.Finish(failedStart(ctx, err))
		return
	}
	s.run(ctx, stream, newParser(em, newMemory(), req.Dir), cli.LeftRun{}, input)
}

// run takes the turn to its end; left is what is known of one that is gone on with.
func (s *oneShot) run(ctx context.Context, stream *cli.Stream, p *parser, left cli.LeftRun, input []byte) {
	p.garbage = stream.Garbage
	end := s.loop(ctx, stream, p, left, input)
	s.end(ctx, stream, p, end)
}

func (s *oneShot) format(req cli.Request) format {
	switch {
	case len(req.Images) > 0:
		return formatBlocks
	case s.provider.opts.PlainJSON:
		return formatJSON
	}
	return formatStream
}

func oneShotInput(f format, req cli.Request) ([]byte, error) {
	if f == formatBlocks {
		return userLine(req, "")
	}
	return []byte(promptText(req.Prompt)), nil
}

func (s *oneShot) loop(ctx context.Context, stream *cli.Stream, p *parser, left cli.LeftRun, input []byte) cli.End {
	var sendErr error
	end := stream.Turn(ctx, cli.TurnLoop{
		Begin: func() {
			if rest := input[min(left.InputEnd, int64(len(input))):]; len(rest) > 0 {
				sendErr = stream.Send(rest)
			}
			stream.CloseInput() // Claude waits for the end of its input before it begins
		},
		Handle:    func(raw []byte) bool { return parseJSON(p, raw) },
		Interrupt: stream.Process().Interrupt,
		Out:       p.em,
	})
	if sendErr != nil {
		s.provider.opts.Logger.Warn("claude did not take its input", "err", sendErr)
	}
	p.em.Finish(turnResult(ctx, stream, end, p))
	return end
}

// silentRetries is how often Claude asks its API again where nobody can see it do so: for seconds, not
// the minutes it would take by itself.
const silentRetries = "3"

func (s *oneShot) fewerRetries(req cli.Request) map[string]string {
	const retries = "CLAUDE_CODE_MAX_RETRIES"
	if cli.Variable(s.provider.environment(req), retries) != "" {
		return req.Env // said by whoever runs ductor
	}
	env := map[string]string{retries: silentRetries}
	maps.Copy(env, req.Env)
	return env
}

func (s *oneShot) start(ctx context.Context, f format, req cli.Request) (*cli.Stream, error) {
	if f == formatJSON {
		req.Env = s.fewerRetries(req)
	}
	proc, err := s.provider.launch(ctx, f, cli.OneShot, req)
	if err != nil {
		return nil, err
	}
	stream := s.listen(proc, nil)
	if err := s.enter(stream); err != nil {
		return nil, errors.Join(err, stream.Close(context.WithoutCancel(ctx)))
	}
	return stream, nil
}

func (s *oneShot) listen(proc *process, past *cli.Past) *cli.Stream {
	o := s.provider.opts
	return cli.NewStream(proc, cli.StreamOptions{
		Agent: agent, Stall: o.Stall, ToolStall: o.ToolStall, Grace: o.Grace, Past: past,
	})
}

// enter makes stream the one that runs; an error says that the session is closed.
func (s *oneShot) enter(stream *cli.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return cli.Failf(cli.UnknownFailure, agent, "the session is closed")
	}
	s.stream = stream
	s.running.Add(1)
	return nil
}

// end lets a process that said its result write down its session and go, and makes it go if it does not.
func (s *oneShot) end(ctx context.Context, stream *cli.Stream, p *parser, end cli.End) {
	defer s.running.Done()
	if end == cli.EndDetached {
		return
	}
	if p.ended && !p.doomed {
		limit, cancel := context.WithTimeout(ctx, s.provider.opts.Grace)
		defer cancel()
		select {
		case <-stream.Process().Done():
		case <-limit.Done():
		}
	}
	if err := stream.Close(context.WithoutCancel(ctx)); err != nil {
		s.provider.opts.Logger.Error("claude did not end", "err", err)
		return // Close tries again, and tells its caller
	}
	s.mu.Lock()
	s.stream = nil
	s.mu.Unlock()
}

func (s *oneShot) watch(emit func(cli.Event)) func(cli.Event) {
	return func(ev cli.Event) {
		if started, ok := ev.(cli.SessionStarted); ok {
			s.mu.Lock()
			s.id = started.AgentSessionID
			s.mu.Unlock()
		}
		emit(ev)
	}
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
	info := cli.SessionInfo{Agent: agent, Mode: cli.OneShot, AgentSessionID: s.id}
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
	if s.takeLeft() != nil {
		s.running.Done()
	}
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
	if s.takeLeft() != nil {
		s.running.Done()
	}
}
