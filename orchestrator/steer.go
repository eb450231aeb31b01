package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
)

// steerWait is how long an agent may take to accept a message.
const steerWait = 15 * time.Second

const steeredSentence = "Nobody knows whether this reached the agent that was working: ductor was stopped, or the agent broke, just then."

// Steer hands a waiting prompt to the turn that runs; see AskDesk.
//
// It is recorded before it is handed over, and as delivered after, so that a ductor that dies in between
// neither loses it nor asks it twice: the next one shows that its fate is unknown.
func (o *Orchestrator) Steer(ctx context.Context, waiting cli.TurnID, by Press) error {
	l, err := o.line(by.Conversation)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	h, err := o.handOver(ctx, l, waiting)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, steerWait)
	defer cancel()
	err = o.opts.Gateway.Steer(call, h.into, h.req)
	switch {
	case err == nil:
		return o.steered(ctx, h)
	case errors.Is(err, cli.ErrNoTurn) || errors.Is(err, errors.ErrUnsupported):
		return o.backToQueue(ctx, l, h)
	}
	o.log.Warn("it is unknown whether a message reached the agent", "turn", waiting, "err", err)
	if o.open() { // else the next process shows it
		defer o.wg.Done()
		o.redeliver(ctx, h.waiting.turn)
	}
	return ErrSteerUnknown
}

// handover is a waiting turn on its way into a running one.
type handover struct {
	waiting waiting
	into    cli.TurnID
	req     cli.Request
	aborts  int // of the line, when it began
}

func (o *Orchestrator) handOver(ctx context.Context, l *line, id cli.TurnID) (handover, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		return handover{}, ErrNotWaiting
	}
	if l.running.req == nil || l.running.turn.apart() { // its agent is not asked yet, or in another matter
		if err := o.promote(ctx, l, id); err != nil {
			return handover{}, err
		}
		return handover{}, ErrCannotSteer
	}
	i := slices.IndexFunc(l.queue, isTurn(id))
	if i < 0 {
		return handover{}, ErrNotWaiting
	}
	if !l.queue[i].turn.Prompt.Rights.ofChat() {
		return handover{}, ErrCannotSteer
	}
	h := handover{into: l.running.turn.ID, req: *l.running.req, aborts: l.aborts}
	ok, err := o.opts.Store.SteerTurn(ctx, id, h.into, o.now())
	if err != nil {
		return handover{}, fmt.Errorf("steer turn: %w", err)
	}
	if !ok {
		return handover{}, ErrNotWaiting
	}
	h.waiting, _ = l.remove(id)
	t := &h.waiting.turn
	t.State, t.Into, t.Agent, t.Model, t.Sandbox, t.Session = TurnSteered, h.into, l.running.turn.Agent, l.running.turn.Model, l.running.turn.Sandbox, l.running.turn.Session
	h.req.Prompt, h.req.Images = wording(t.Prompt)
	h.req.Files = filesOf(t.Prompt)
	return h, nil
}

// steered records that the agent has it.
func (o *Orchestrator) steered(ctx context.Context, h handover) error {
	err := o.opts.Store.MarkDelivered(ctx, h.waiting.turn.ID)
	o.unqueued(h.waiting)
	if err != nil {
		return fmt.Errorf("record a steered turn: %w", err)
	}
	return nil
}

// backToQueue has a turn wait again, as the first, unless an abort emptied the queue.
func (o *Orchestrator) backToQueue(ctx context.Context, l *line, h handover) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := h.waiting
	if l.aborts != h.aborts { // it must not be queued for a moment: the next process would run it
		if err := o.drop(ctx, w); err != nil {
			return err
		}
		return ErrNotWaiting
	}
	ok, err := o.opts.Store.UnsteerTurn(ctx, w.turn.ID)
	if err != nil || !ok {
		return fmt.Errorf("take a turn back into the queue: %w", errors.Join(err, ErrNotWaiting))
	}
	w.turn.State, w.turn.Into, w.turn.Agent, w.turn.Model, w.turn.Sandbox = TurnQueued, "", "", "", ""
	l.queue = slices.Insert(l.queue, 0, w)
	o.serve(l)
	return ErrCannotSteer
}

func (o *Orchestrator) unqueued(w waiting) {
	if w.shown {
		o.opts.Chat.Unqueued(w.turn)
	}
}

// Interrupt ends the turn that runs and runs the waiting one next; see AskDesk.
func (o *Orchestrator) Interrupt(ctx context.Context, waiting cli.TurnID, by Press) error {
	l, err := o.line(by.Conversation)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := o.promote(ctx, l, waiting); err != nil {
		return err
	}
	return o.endRunning(ctx, l)
}

// promote makes a turn the first of those that wait; ErrNotWaiting if it is not among them. l.mu is held.
func (o *Orchestrator) promote(ctx context.Context, l *line, id cli.TurnID) error {
	if !slices.ContainsFunc(l.queue, isTurn(id)) {
		return ErrNotWaiting
	}
	ok, err := o.opts.Store.PromoteTurn(ctx, id)
	if err != nil {
		return fmt.Errorf("promote turn: %w", err)
	}
	if !ok {
		return ErrNotWaiting
	}
	w, _ := l.remove(id)
	l.queue = slices.Insert(l.queue, 0, w)
	return nil
}

func isTurn(id cli.TurnID) func(waiting) bool {
	return func(w waiting) bool { return w.turn.ID == id }
}

// endRunning ends the turn that runs, and nothing else: another takes its place. l.mu is held.
func (o *Orchestrator) endRunning(ctx context.Context, l *line) error {
	if l.running == nil {
		return nil
	}
	l.running.cancel(cli.ErrReplaced)
	if err := o.opts.Store.AbortTurns(ctx, l.running.turn.ID, nil); err != nil {
		return fmt.Errorf("record abort: %w", err)
	}
	return nil
}

// Restart ends a turn that runs and runs its prompt with another text next; see AskDesk.
func (o *Orchestrator) Restart(ctx context.Context, id cli.TurnID, text string, by Press) (Receipt, error) {
	l, err := o.line(by.Conversation)
	if err != nil {
		return Receipt{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil || l.running.turn.ID != id {
		return Receipt{}, o.whyNotRunning(ctx, id, by)
	}
	t := Turn{
		ID: cli.TurnID(o.opts.NewID()), Again: id, Session: l.running.turn.Session, State: TurnQueued, Queued: o.now(),
		Prompt: l.running.turn.Prompt, Wants: l.running.turn.Wants,
	}
	t.Prompt.Text, t.Prompt.Person, t.Prompt.Updates = text, by.Person, by.Updates
	if err := o.opts.Store.EnqueueTurn(ctx, t); err != nil {
		return Receipt{}, fmt.Errorf("enqueue turn: %w", err)
	}
	l.queue = slices.Insert(l.queue, 0, waiting{turn: t})
	if _, err := o.opts.Store.PromoteTurn(ctx, t.ID); err != nil {
		return Receipt{}, fmt.Errorf("promote turn: %w", err)
	}
	return Receipt{Turn: t.ID, Ahead: 1, Did: BusyInterrupt}, o.endRunning(ctx, l)
}

// whyNotRunning says what became of a turn that somebody takes for a running one of the conversation.
func (o *Orchestrator) whyNotRunning(ctx context.Context, id cli.TurnID, by Press) error {
	t, err := o.opts.Store.Turn(ctx, id)
	switch {
	case err != nil:
		return err
	case t.Prompt.Conversation != by.Conversation:
		return ErrElsewhere
	}
	return ErrNoTurn
}
