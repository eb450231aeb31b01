package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ductor/cli"
)

// Decide sends a user's answer to the agent of a running turn. It returns ErrNotAsked if the turn is not running, or if
// no request with this ID is waiting in it. The answer never reaches another turn. Safe for concurrent use.
func (s *Service) Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
	return s.present.withTurn(ctx, turn, cli.ErrNotAsked, func(ctx context.Context, to *presence) error {
		decider, ok := to.session.session.(cli.Decider)
		if !ok {
			return cli.ErrNotAsked
		}
		if err := decider.Decide(ctx, id, d); err != nil {
			return err
		}
		s.pool.waitsForUser(to.session, id, false)
		return nil
	})
}

// Bring copies files of this host to the same paths in a sandbox. It does nothing if sandbox is empty, which means this
// host. Safe for concurrent use.
func (s *Service) Bring(ctx context.Context, sandbox cli.Sandbox, files []string) error {
	if !s.work.enter() {
		return cli.ErrClosing
	}
	defer s.work.Done()
	at := s.runEnvs.get(sandbox)
	if at == nil {
		return &cli.Failure{Kind: cli.NoSandbox, Sandbox: sandbox, Reason: "it is not configured"}
	}
	return at.bring(ctx, files)
}

// Steer adds req's prompt to a running turn, and returns after the agent received it. The agent gets the prompt as text,
// even if req is a command. Safe for concurrent use.
//
// Steer returns ErrNoTurn if the turn is not running or accepts no more messages. The error matches
// errors.ErrUnsupported if the agent accepts no messages during a turn. After any other error, it is unknown whether
// the agent received the prompt.
func (s *Service) Steer(ctx context.Context, turn cli.TurnID, req cli.Request) error {
	return s.present.withTurn(ctx, turn, cli.ErrNoTurn, func(ctx context.Context, to *presence) error {
		steerer, ok := to.session.session.(cli.Steerer)
		if !ok {
			return fmt.Errorf("steer %s: %w", to.session.agent, errors.ErrUnsupported)
		}
		// If this fails, return ErrNoTurn. The caller then runs the message as a new turn, which reports the error to
		// the user.
		if err := s.runEnvs.get(to.session.sandbox).bring(ctx, req.Files); err != nil {
			return fmt.Errorf("steer %s: %w: %w", to.session.agent, cli.ErrNoTurn, err)
		}
		req.Task = cli.TaskPrompt
		return steerer.Steer(ctx, req)
	})
}

// SetPermission changes the permission mode of a running turn. Safe for concurrent use.
//
// SetPermission returns ErrNoTurn if the turn is not running. The error matches errors.ErrUnsupported if the agent
// cannot change the mode during a turn. After any other error, it is unknown which mode the agent uses.
func (s *Service) SetPermission(ctx context.Context, turn cli.TurnID, mode cli.PermissionMode) error {
	return s.present.withTurn(ctx, turn, cli.ErrNoTurn, func(ctx context.Context, to *presence) error {
		session, ok := to.session.session.(cli.PermissionSetter)
		if !ok {
			return fmt.Errorf("change the permission mode of %s: %w", to.session.agent, errors.ErrUnsupported)
		}
		return session.SetPermission(ctx, mode)
	})
}

// recordStart implements cli.Recorder. For a turn, it stores the start of the turn. For cli.BackgroundMark, it stores
// whether the run has background work.
func (s *Service) recordStart(ctx context.Context, turn cli.TurnID, start cli.Start) error {
	if turn == cli.BackgroundMark {
		return s.opts.Background(ctx, start)
	}
	return s.present.withTurn(ctx, turn, cli.ErrNoTurn, func(_ context.Context, to *presence) error {
		if to.started == nil {
			return nil
		}
		return to.started(ctx, start)
	})
}

// present contains the running turns with their sessions. Methods such as Decide and Steer use it to find a turn. A
// turn is removed only after all calls that use the turn have returned. Otherwise such a call could act on the
// session's next turn, in which the agent may use the same request IDs.
type present struct {
	mu    sync.Mutex
	turns map[cli.TurnID]*presence
}

type presence struct {
	session *pooled
	started func(context.Context, cli.Start) error // callback in Request.Started
	life    context.Context                        // ends with the turn
	calls   *group
}

func newPresent() *present { return &present{turns: map[cli.TurnID]*presence{}} }

// enter adds a turn. The returned function removes the turn: it cancels the calls that use the turn, and waits for them
// at most the given time. It returns false if the calls take longer.
func (p *present) enter(req cli.Request, session *pooled) (leave func(patience time.Duration) bool) {
	life, end := context.WithCancelCause(context.Background())
	turn, e := req.Turn, &presence{session: session, started: req.Started, life: life, calls: newGroup()}
	p.mu.Lock()
	p.turns[turn] = e
	p.mu.Unlock()
	return func(patience time.Duration) bool {
		p.mu.Lock()
		if p.turns[turn] == e {
			delete(p.turns, turn)
		}
		p.mu.Unlock()
		e.calls.close()
		end(cli.ErrNoTurn)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return e.calls.wait(ctx) == nil
	}
}

// withTurn calls f for a running turn. The context of f is cancelled when the turn ends. withTurn returns notRunning if
// the turn is not running.
func (p *present) withTurn(ctx context.Context, turn cli.TurnID, notRunning error,
	f func(context.Context, *presence) error) error {
	p.mu.Lock()
	e := p.turns[turn]
	p.mu.Unlock()
	if e == nil || !e.calls.enter() {
		return notRunning
	}
	defer e.calls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.life, func() { cancel(cli.ErrNoTurn) })()
	return guard(e.session.agent, func() error { return f(ctx, e) })
}

// askLimit limits how long an agent may take to answer a question about itself, including the start of its process.
const askLimit = 30 * time.Second

// Fill asks an agent how full the context of a session is, and what fills it. Like the Request of a turn, req describes
// the session. turn is the ID of the session's running turn, or "". The error matches errors.ErrUnsupported if the
// agent does not report how full the context is.
func (s *Service) Fill(ctx context.Context, agent cli.Agent, req cli.Request, turn cli.TurnID) (fill cli.Fill,
	err error) {
	err = s.withSession(ctx, agent, req, turn, func(ctx context.Context, session cli.Session) error {
		fill, err = inquire(ctx, session, cli.FillReporter.Fill)
		return err
	})
	return fill, err
}

// Commands lists the commands and skills of an agent. Its parameters are those of Fill. The error matches
// errors.ErrUnsupported if the agent has no commands.
func (s *Service) Commands(ctx context.Context, agent cli.Agent, req cli.Request,
	turn cli.TurnID) (list []cli.AgentCommand, err error) {
	err = s.withSession(ctx, agent, req, turn, func(ctx context.Context, session cli.Session) error {
		list, err = inquire(ctx, session, cli.Commander.Commands)
		return err
	})
	return list, err
}

// inquire calls a method of S on a session. If the session does not implement S, it returns an error that matches
// errors.ErrUnsupported.
func inquire[S, A any](ctx context.Context, session cli.Session,
	question func(S, context.Context) (A, error)) (answer A, err error) {
	able, ok := session.(S)
	if !ok {
		return answer, fmt.Errorf("ask %s: %w", session.Info().Agent, errors.ErrUnsupported)
	}
	return question(able, ctx)
}

// withSession calls f with a live session of the conversation. This is the session of the running turn, or the idle
// session. If there is neither, withSession opens a session, and the next turn can use it. withSession starts no turn.
func (s *Service) withSession(ctx context.Context, agent cli.Agent, req cli.Request, turn cli.TurnID,
	f func(context.Context, cli.Session) error) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if turn != "" {
		err := s.present.withTurn(ctx, turn, cli.ErrNoTurn,
			func(ctx context.Context, to *presence) error { return f(ctx, to.session.session) })
		if !errors.Is(err, cli.ErrNoTurn) { // ErrNoTurn means that the turn has ended, so its session is idle
			return err
		}
	}
	if !s.work.enter() {
		return cli.ErrClosing
	}
	defer s.work.Done()
	entry, failure := s.at(req.Sandbox, agent, req.Accounts[agent])
	if failure == nil {
		req, failure = entry.limited(req)
	}
	if failure != nil {
		return failure
	}
	lent, err := s.borrow(ctx, entry, req)
	if err != nil {
		return err
	}
	err = guard(agent, func() error { return f(ctx, lent.session) })
	if !s.pool.giveBack(lent) {
		s.pool.discardInBackground(lent)
	}
	s.pool.requestMeasurement()
	return err
}

// borrow returns the conversation's idle session. If there is none, it opens one.
func (s *Service) borrow(ctx context.Context, entry *agentEntry, req cli.Request) (*pooled, error) {
	req, err := s.ready(ctx, entry, req, nil)
	if err != nil {
		return nil, err
	}
	mode, err := s.mode(ctx, entry)
	if err == nil && mode != cli.Live {
		err = fmt.Errorf("ask %s about itself: %w", entry.provider.Agent(), errors.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	quiet := func(cli.Event) {}
	lent, err := s.pool.acquire(ctx, entry, mode, req, nil, func(shortage) {})
	if err != nil || lent.session != nil {
		return lent, err
	}
	session, _, err := s.open(ctx, entry, mode, req, lent, quiet)
	if err == nil && session == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.pool.lend(lent, req.Conversation, session)
	return lent, nil
}
