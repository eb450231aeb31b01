package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"ductor/cli"
)

const noteWait = 2 * time.Second

func (s *live) running() *liveTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// Decide implements cli.Decider. It sends the answer first, and then stores it. If ductor is killed in between, ductor
// asks the same question again after a restart, and Claude uses the first answer.
func (s *live) Decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	t := s.running()
	if t == nil {
		return cli.ErrNotAsked
	}
	a, ok := t.p.approvals.Take(id)
	if !ok {
		return cli.ErrNotAsked
	}
	t.run.stream.Wake()
	t.notes.Lock()
	defer t.notes.Unlock()
	if err := t.deliver(ctx, a.answer(d)); err != nil {
		return fmt.Errorf("answer claude: %w", err)
	}
	t.note.sent.Answered, t.note.sent.Sending = t.p.approvals.Answered(), ""
	t.updateNote(ctx)
	return nil
}

// Steer implements cli.Steerer. It waits until the turn's prompt was sent, and returns after it has written the
// message. Claude reads the message between two tools or after its current text, but before the turn's Result. A
// message with req.Turn is sent only once, even if Steer is called again.
func (s *live) Steer(ctx context.Context, req cli.Request) error {
	t := s.running()
	if t == nil {
		return cli.ErrNoTurn
	}
	if f := req.Unsendable(agent); f != nil {
		return f
	}
	id := uuid.NewString()
	// If Claude does not read a message during its turn, ductor sends the message again in the next turn. The message
	// then needs another ID, because Claude ignores an ID that it knows. So the ID depends on both turns.
	if req.Turn != "" {
		id = t.note.sent.steerOf(t.req.Turn, req.Turn)
	}
	line, err := userLine(req, id)
	if err != nil {
		return cli.Failf(cli.Refused, agent, "%v", err)
	}
	select {
	case <-t.open.asked:
	case <-t.gone:
		return cli.ErrNoTurn
	case <-ctx.Done():
		return fmt.Errorf("steer claude: %w", context.Cause(ctx))
	}
	return t.steer(ctx, id, req.Turn, line)
}

// steer sends a message during the turn. Claude may print a separate result for this message. ductor must expect this
// result even after a restart, so steer first stores the message's ID in the note.
func (t *liveTurn) steer(ctx context.Context, id string, turn cli.TurnID, line []byte) error {
	t.notes.Lock()
	defer t.notes.Unlock()
	m, isNew := t.p.steers.Add(id, turn)
	switch {
	case m == nil:
		return cli.ErrNoTurn
	case !isNew:
		return nil
	}
	sent := &t.note.sent
	sent.Steers, sent.Sending = nil, id
	t.p.steers.Sent(func(id string, turn cli.TurnID) { sent.Steers = append(sent.Steers, id+" "+string(turn)) })
	t.updateNote(ctx)
	if err := t.deliver(ctx, line); err != nil {
		return m.Lost(ctx, err)
	}
	return m.Accepted(id)
}

// deliver sends a line and waits until it was written.
func (t *liveTurn) deliver(ctx context.Context, line []byte) error {
	written := make(chan error, 1)
	if err := t.run.stream.SendTold(line, func(err error) { written <- err }); err != nil {
		return err
	}
	select {
	case err := <-written:
		return err
	case <-t.gone:
		return lastWritten(written)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lastWritten returns the result of writing a line. Callers use it after the end of the turn, because Claude may have
// read the line and ended the turn before the writer reported its result.
func lastWritten(written <-chan error) error {
	select {
	case err := <-written:
		return err
	case <-time.After(noteWait):
		return cli.ErrNoTurn
	}
}

// updateNote stores the current note of the turn. It only logs an error, because the turn can continue without the
// note.
func (t *liveTurn) updateNote(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteWait)
	defer cancel()
	if err := t.run.process.updateNote(ctx, t.req.Turn, t.note.String()); err != nil {
		t.session.provider.opts.Logger.Warn("what was sent to claude is not noted", "err", err)
	}
}

// takeBackID is the prefix of the ID of a request that asks Claude to drop a message. The ID of the message follows the
// prefix.
const takeBackID = "take-back-"

// interrupt asks Claude to end the turn. Before that, it withdraws the messages that Claude has not read, because
// Claude would work on them after the interrupt.
func (t *liveTurn) interrupt() error {
	var lines []byte
	for _, id := range t.p.steers.Waiting() {
		lines = append(lines, controlLine(takeBackID+id, map[string]any{"subtype": "cancel_async_message", "message_uuid": id})...)
	}
	return t.run.stream.Send(append(lines, controlLine(interruptID, subtype("interrupt"))...))
}

// replied handles Claude's answer to any request of ductor.
func (t *liveTurn) replied(r *controlReply) {
	if t.run.asked.answer(r) {
		return
	}
	id, ok := strings.CutPrefix(r.RequestID, takeBackID)
	if !ok {
		t.open.reply(r)
		return
	}
	var answer struct {
		Cancelled bool `json:"cancelled"`
	}
	// If the answer is an error, Claude may still read the message. In this case liveTurn.finish stops the process.
	if json.Unmarshal(r.Response, &answer) == nil && answer.Cancelled {
		t.p.steers.Drop(id)
	}
}

var _ cli.PermissionSetter = (*live)(nil)

// SetPermission implements cli.PermissionSetter. Claude applies the mode from its next tool on.
func (s *live) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	t := s.running()
	if t == nil {
		return cli.ErrNoTurn
	}
	flag, err := permissionFlag(mode)
	if err != nil {
		return err
	}
	// The turn sets its own permission mode before it sends its prompt. Wait until the prompt is sent.
	select {
	case <-t.open.asked:
	case <-t.gone:
		return cli.ErrNoTurn
	case <-ctx.Done():
		return fmt.Errorf("set the permission mode: %w", context.Cause(ctx))
	}
	if err := s.request(ctx, map[string]any{"subtype": "set_permission_mode", "mode": flag}, nil); err != nil {
		return fmt.Errorf("set the permission mode: %w", err)
	}
	t.switched(flag)
	return nil
}

// switched records the new permission mode of the process.
func (t *liveTurn) switched(flag string) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.open.want.Permission, t.session.turnSettings.Permission = flag, flag
}
