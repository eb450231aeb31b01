package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// steerWait is how long an agent may take to accept a message.
const steerWait = 15 * time.Second

const steeredSentence = "It is unknown whether this reached the agent that was working: ductor was stopped, or the agent broke, just then."

// Steer hands a waiting prompt to the turn that runs; see AskDesk.
//
// It is recorded before it is handed over, and as delivered after, so that a ductor that dies in between
// neither loses it nor asks it twice: the next one shows that its fate is unknown.
func (e *Engine) Steer(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error {
	l, err := e.line(by.Conversation)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	h, err := e.handOver(ctx, l, waiting)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, steerWait)
	defer cancel()
	err = e.opts.Gateway.Steer(call, h.into, h.req)
	switch {
	case err == nil:
		return e.steered(ctx, h)
	case errors.Is(err, cli.ErrNoTurn) || errors.Is(err, errors.ErrUnsupported):
		return e.backToQueue(ctx, l, h)
	}
	e.log.Warn("it is unknown whether a message reached the agent", "turn", waiting, "err", err)
	if e.open() { // else the next process shows it
		defer e.wg.Done()
		e.redeliver(ctx, h.waiting.turn)
	}
	return orchestrator.ErrSteerUnknown
}

// handover is a waiting turn on its way into a running one.
type handover struct {
	waiting waiting
	into    cli.TurnID
	req     cli.Request
	aborts  int // of the line, when it began
}

func (e *Engine) handOver(ctx context.Context, l *line, id cli.TurnID) (handover, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		return handover{}, orchestrator.ErrNotWaiting
	}
	if l.running.req == nil || apart(l.running.turn) { // its agent is not asked yet, or in another matter
		if err := e.promote(ctx, l, id); err != nil {
			return handover{}, err
		}
		return handover{}, orchestrator.ErrCannotSteer
	}
	i := slices.IndexFunc(l.queue, isTurn(id))
	if i < 0 {
		return handover{}, orchestrator.ErrNotWaiting
	}
	if !l.queue[i].turn.Prompt.Rights.OfChat() {
		return handover{}, orchestrator.ErrCannotSteer
	}
	h := handover{into: l.running.turn.ID, req: *l.running.req, aborts: l.aborts}
	ok, err := e.opts.Store.SteerTurn(ctx, id, h.into, e.now())
	if err != nil {
		return handover{}, fmt.Errorf("steer turn: %w", err)
	}
	if !ok {
		return handover{}, orchestrator.ErrNotWaiting
	}
	h.waiting, _ = l.remove(id)
	t := &h.waiting.turn
	t.State, t.Into, t.Agent, t.Model, t.Sandbox, t.Session = orchestrator.TurnSteered, h.into, l.running.turn.Agent, l.running.turn.Model, l.running.turn.Sandbox, l.running.turn.Session
	h.req.Prompt, h.req.Images = wording(t.Prompt)
	h.req.Files = filesOf(t.Prompt)
	return h, nil
}

// steered records that the agent has it.
func (e *Engine) steered(ctx context.Context, h handover) error {
	err := e.opts.Store.MarkDelivered(ctx, h.waiting.turn.ID)
	e.unqueued(h.waiting)
	if err != nil {
		return fmt.Errorf("record a steered turn: %w", err)
	}
	return nil
}

// backToQueue has a turn wait again, as the first, unless an abort emptied the queue.
func (e *Engine) backToQueue(ctx context.Context, l *line, h handover) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := h.waiting
	if l.aborts != h.aborts { // it must not be queued for a moment: the next process would run it
		if err := e.drop(ctx, w); err != nil {
			return err
		}
		return orchestrator.ErrNotWaiting
	}
	ok, err := e.opts.Store.UnsteerTurn(ctx, w.turn.ID)
	if err != nil || !ok {
		return fmt.Errorf("take a turn back into the queue: %w", errors.Join(err, orchestrator.ErrNotWaiting))
	}
	w.turn.State, w.turn.Into, w.turn.Agent, w.turn.Model, w.turn.Sandbox = orchestrator.TurnQueued, "", "", "", ""
	l.queue = slices.Insert(l.queue, 0, w)
	e.serve(l)
	return orchestrator.ErrCannotSteer
}

func (e *Engine) unqueued(w waiting) {
	if w.shown {
		e.opts.Chat.Unqueued(w.turn)
	}
}

// Interrupt ends the turn that runs and runs the waiting one next; see AskDesk.
func (e *Engine) Interrupt(ctx context.Context, waiting cli.TurnID, by orchestrator.Press) error {
	l, err := e.line(by.Conversation)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := e.promote(ctx, l, waiting); err != nil {
		return err
	}
	return e.endRunning(ctx, l)
}

// promote makes a turn the first of those that wait; ErrNotWaiting if it is not among them. l.mu is held.
func (e *Engine) promote(ctx context.Context, l *line, id cli.TurnID) error {
	if !slices.ContainsFunc(l.queue, isTurn(id)) {
		return orchestrator.ErrNotWaiting
	}
	ok, err := e.opts.Store.PromoteTurn(ctx, id)
	if err != nil {
		return fmt.Errorf("promote turn: %w", err)
	}
	if !ok {
		return orchestrator.ErrNotWaiting
	}
	w, _ := l.remove(id)
	l.queue = slices.Insert(l.queue, 0, w)
	return nil
}

func isTurn(id cli.TurnID) func(waiting) bool {
	return func(w waiting) bool { return w.turn.ID == id }
}

// endRunning ends the turn that runs, and nothing else: another takes its place. l.mu is held.
func (e *Engine) endRunning(ctx context.Context, l *line) error {
	if l.running == nil {
		return nil
	}
	l.running.cancel(cli.ErrReplaced)
	if err := e.opts.Store.AbortTurns(ctx, l.running.turn.ID, nil); err != nil {
		return fmt.Errorf("record abort: %w", err)
	}
	return nil
}

// Restart ends a turn that runs and runs its prompt with another text next; see AskDesk.
func (e *Engine) Restart(ctx context.Context, id cli.TurnID, text string, by orchestrator.Press) (orchestrator.Receipt, error) {
	l, err := e.line(by.Conversation)
	if err != nil {
		return orchestrator.Receipt{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil || l.running.turn.ID != id {
		return orchestrator.Receipt{}, e.whyNotRunning(ctx, id, by)
	}
	t := orchestrator.Turn{
		ID: cli.TurnID(e.opts.NewID()), Again: id, Session: l.running.turn.Session, State: orchestrator.TurnQueued, Queued: e.now(),
		Prompt: l.running.turn.Prompt, Wants: l.running.turn.Wants,
	}
	t.Prompt.Text, t.Prompt.Person, t.Prompt.Updates = text, by.Person, by.Updates
	if err := e.opts.Store.EnqueueTurn(ctx, t); err != nil {
		return orchestrator.Receipt{}, fmt.Errorf("enqueue turn: %w", err)
	}
	l.queue = slices.Insert(l.queue, 0, waiting{turn: t})
	if _, err := e.opts.Store.PromoteTurn(ctx, t.ID); err != nil {
		return orchestrator.Receipt{}, fmt.Errorf("promote turn: %w", err)
	}
	return orchestrator.Receipt{Turn: t.ID, Ahead: 1, Did: orchestrator.BusyInterrupt}, e.endRunning(ctx, l)
}

// whyNotRunning says what became of a turn that somebody takes for a running one of the conversation.
func (e *Engine) whyNotRunning(ctx context.Context, id cli.TurnID, by orchestrator.Press) error {
	t, err := e.opts.Store.Turn(ctx, id)
	switch {
	case err != nil:
		return err
	case t.Prompt.Conversation != by.Conversation:
		return orchestrator.ErrElsewhere
	}
	return orchestrator.ErrNoTurn
}
