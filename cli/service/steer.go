package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ductor/cli"
)

// Decide hands a person's answer to the agent of a turn that runs. It returns when the answer is on its way;
// ErrNotAsked if nothing of this id waits in this turn, which is so when the turn does not run. An answer
// never reaches another turn than its own. Safe for concurrent use.
func (s *Service) Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
	return s.present.with(ctx, turn, cli.ErrNotAsked, func(ctx context.Context, to *presence) error {
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

// Steer adds req's prompt to a turn that runs. It returns when the agent has it; ErrNoTurn if the turn does
// not run or takes nothing any more, an error that is errors.ErrUnsupported if the agent takes no message
// while it works. After any other error it is unknown whether the agent has it. Safe for concurrent use.
func (s *Service) Steer(ctx context.Context, turn cli.TurnID, req cli.Request) error {
	return s.present.with(ctx, turn, cli.ErrNoTurn, func(ctx context.Context, to *presence) error {
		steerer, ok := to.session.session.(cli.Steerer)
		if !ok {
			return fmt.Errorf("steer %s: %w", to.session.agent, errors.ErrUnsupported)
		}
		if err := s.runEnvs.get(to.session.sandbox).bring(ctx, req.Files); err != nil { // its own turn will say why
			return fmt.Errorf("steer %s: %w: %w", to.session.agent, cli.ErrNoTurn, err)
		}
		return steerer.Steer(ctx, req)
	})
}

// SetPermission has the agent of a turn that runs work in another permission mode from now on; ErrNoTurn if the turn does
// not run, an error that is errors.ErrUnsupported if the agent cannot change in the middle of its work. After any other
// error it is not known how the agent works. Safe for concurrent use.
func (s *Service) SetPermission(ctx context.Context, turn cli.TurnID, mode cli.PermissionMode) error {
	return s.present.with(ctx, turn, cli.ErrNoTurn, func(ctx context.Context, to *presence) error {
		session, ok := to.session.session.(cli.PermissionSetter)
		if !ok {
			return fmt.Errorf("change the permission mode of %s: %w", to.session.agent, errors.ErrUnsupported)
		}
		return session.SetPermission(ctx, mode)
	})
}

// recordStart has it stored where a turn begins; see cli.Recorder.
func (s *Service) recordStart(ctx context.Context, turn cli.TurnID, start cli.Start) error {
	if turn == cli.BackgroundMark {
		return s.opts.Background(ctx, start)
	}
	return s.present.with(ctx, turn, cli.ErrNoTurn, func(_ context.Context, to *presence) error {
		if to.started == nil {
			return nil
		}
		return to.started(ctx, start)
	})
}

// present knows the session of each turn that runs. A session serves one turn after the other, and an agent
// may call what it asks by the same name in each, so a turn ends here only when no caller speaks to it any more.
type present struct {
	mu    sync.Mutex
	turns map[cli.TurnID]*presence
}

type presence struct {
	session *pooled
	started func(context.Context, cli.Start) error // of its request
	life    context.Context                        // of the turn
	calls   *group
}

func newPresent() *present { return &present{turns: map[cli.TurnID]*presence{}} }

// enter makes a turn known until the function it returns is called. That waits for the calls under way, which
// are cancelled, but not longer than patience; false if it was in vain.
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

// with calls f with what is known of a turn; absent is the error when it does not run.
func (p *present) with(ctx context.Context, turn cli.TurnID, absent error, f func(context.Context, *presence) error) error {
	p.mu.Lock()
	e := p.turns[turn]
	p.mu.Unlock()
	if e == nil || !e.calls.enter() {
		return absent
	}
	defer e.calls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.life, func() { cancel(cli.ErrNoTurn) })()
	return guard(e.session.agent, func() error { return f(ctx, e) })
}
