package clitest

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// fake is a provider for runFake, as small as a dialect can be: what a dialect must do itself is here,
// the rest is done by package cli.
type fake struct {
	launcher cli.Launcher
	home     string
}

func (fake) Agent() cli.Agent  { return "fake" }
func (fake) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }
func (fake) Auth(context.Context) cli.Auth {
	return cli.Auth{State: cli.Authenticated}
}
func (fake) Models(context.Context) ([]cli.Model, error) {
	return []cli.Model{{Agent: "fake", ID: "one"}}, nil
}

func (f fake) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	s := &fakeSession{fake: f, mode: mode, id: req.Resume}
	if mode == cli.Live {
		return s, s.start(ctx, req)
	}
	return s, nil
}

// Adopt goes on with a turn from its mark on.
func (f fake) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	s := &fakeSession{fake: f, mode: left.Mode, id: req.Resume}
	var from cli.Mark
	for _, m := range left.Marks {
		if from = m; m.Turn == req.Turn {
			s.adopted = &adopted{turn: m.Turn, asked: left.InputEnd > m.Input}
			break
		}
	}
	if s.adopted == nil {
		return nil, cli.Failf(cli.UnknownFailure, "fake", "it does not know the turn")
	}
	p, err := f.launcher.Attach(ctx, left.Run, from.Output)
	if err != nil {
		return nil, cli.AsFailure("fake", err)
	}
	s.listen(p, &turn.Past{From: from.Output, Until: left.OutputEnd})
	return s, nil
}

type fakeSession struct {
	fake
	mode    cli.Mode
	adopted *adopted // the turn to go on with

	mu     sync.Mutex
	id     cli.AgentSessionID
	stream *turn.Stream
}

type adopted struct {
	turn  cli.TurnID
	asked bool
}

func (s *fakeSession) start(ctx context.Context, req cli.Request) error {
	self, err := os.Executable()
	if err != nil {
		return cli.AsFailure("fake", err)
	}
	cmd := cli.Command{
		Path: self, Dir: req.Dir, Env: append(cli.ChildEnv(os.Environ(), cli.BaseEnv(), req.Env), fakeVar+"="+s.home, "GORACE=atexit_sleep_ms=0"),
		For: cli.Purpose{Agent: "fake", Mode: s.mode, Conversation: req.Conversation},
	}
	if s.mode == cli.OneShot {
		cmd.Turn = req.Turn
	}
	p, err := s.launcher.Start(ctx, cmd)
	if err != nil {
		return cli.AsFailure("fake", err)
	}
	s.listen(p, nil)
	return nil
}

func (s *fakeSession) listen(p cli.Process, past *turn.Past) {
	opts := turn.StreamOptions{Agent: "fake", Limits: turn.Limits{Grace: 300 * time.Millisecond}, Past: past}
	if s.mode == cli.Live && s.adopted == nil {
		opts.Idle = func([]byte) {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = turn.NewStream(p, opts)
}

func (s *fakeSession) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	em := turn.NewEmitter("fake", time.Now, emit)
	if ctx.Err() != nil {
		em.Finish(cli.Cut(ctx, "fake"))
		return
	}
	was := s.adopted
	s.adopted = nil
	if was != nil && was.turn != req.Turn {
		em.Finish(cli.Result{Err: cli.Failf(cli.UnknownFailure, "fake", "another turn is to be gone on with")})
		return
	}
	if s.mode == cli.OneShot && was == nil {
		if err := s.start(ctx, req); err != nil {
			em.Finish(cli.Result{Err: cli.AsFailure("fake", err)})
			return
		}
	}
	em.Finish(s.play(ctx, req, em, was))
}

// play runs a turn, or goes on with it.
func (s *fakeSession) play(ctx context.Context, req cli.Request, em *turn.Emitter, was *adopted) cli.Result {
	s.mu.Lock()
	stream, prompt := s.stream, line{Kind: "prompt", Text: req.Prompt, ID: string(s.id)}
	s.mu.Unlock()
	var done *line
	loop := turn.Loop[[]byte]{
		Begin: func() {
			if was != nil {
				em.Past(stream.Clock(time.Now))
			}
			if was == nil || !was.asked {
				_ = stream.Send(encode(prompt)) // what is not sent shows as the end of the process
			}
		},
		Handle: func(raw []byte) bool {
			var l line
			if json.Unmarshal(raw, &l) != nil {
				stream.Garbage(raw)
				return false
			}
			done = s.handle(em, l)
			return done != nil
		},
		Interrupt: func() error { return stream.Send(encode(line{Kind: "interrupt"})) },
		Out:       em,
	}
	if s.mode == cli.Live && was == nil {
		loop.Mark = cli.Mark{Turn: req.Turn}
	}
	end := stream.Turn(ctx, loop)
	var r cli.Result
	switch {
	case end != turn.EndTurn:
		r = stream.Outcome(end)
	case done.Failed:
		r.Err = cli.Failf(cli.Refused, "fake", "%s", done.Text)
	}
	if s.mode == cli.OneShot && end != turn.EndDetached {
		if err := stream.Close(context.WithoutCancel(ctx)); err != nil && r.Err == nil && !r.Aborted {
			r.Err = cli.AsFailure("fake", err)
		}
	}
	return r
}

func encode(l line) []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

// handle passes a line on; it returns the one that ends the turn.
func (s *fakeSession) handle(em *turn.Emitter, l line) *line {
	switch l.Kind {
	case "session":
		s.mu.Lock()
		s.id = cli.AgentSessionID(l.ID)
		s.mu.Unlock()
		em.Session(cli.AgentSessionID(l.ID), "one")
	case "text":
		em.Text(l.ID, l.Text)
	case "whole":
		em.FullText(l.ID, l.Text)
	case "think":
		em.Thinking(l.Text)
	case "tool":
		em.ToolStart(cli.ToolStarted{ID: cli.ToolID(l.ID), Name: "shell", Title: l.Text})
	case "toolend":
		ended := cli.ToolEnded{ID: cli.ToolID(l.ID), Output: l.Text}
		if l.Failed {
			ended.Err = "the command failed"
		}
		em.ToolEnd(ended)
	case "done":
		return &l
	}
	return nil
}

func (s *fakeSession) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return req.Resume == s.id
}

func (s *fakeSession) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: "fake", Mode: s.mode, AgentSessionID: s.id}
	if s.stream == nil {
		info.Alive = s.mode == cli.OneShot
		return info
	}
	select {
	case <-s.stream.Process().Done():
	default:
		info.PID, info.Alive = s.stream.Process().PID(), true
	}
	return info
}

func (s *fakeSession) Close(ctx context.Context) error {
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	if stream == nil {
		return nil
	}
	return stream.Close(ctx)
}

func (s *fakeSession) Detach() {
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	if stream != nil {
		stream.Detach()
	}
}
