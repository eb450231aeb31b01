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

// running is the turn that runs; nil for none.
func (s *live) running() *liveTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// Decide answers what Claude asked; see cli.Decider. That it was answered is noted after the answer was sent: when
// ductor is killed between the two, the same is asked once more, and Claude goes by the first answer.
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
	t.note.Answered, t.note.Sending = t.p.approvals.Answered(), ""
	t.renote(ctx)
	return nil
}

// Steer sends a message into the turn that runs; see cli.Steerer. It waits until the prompt was sent, and returns
// when the message was written. Claude takes it up between two tools, or else goes on with it after what
// it says now; the turn's Result comes after that. A message with a Turn is sent once, however often it is
// given.
func (s *live) Steer(ctx context.Context, req cli.Request) error {
	t := s.running()
	if t == nil {
		return cli.ErrNoTurn
	}
	if f := req.Unsendable(agent); f != nil {
		return f
	}
	id := uuid.NewString()
	if req.Turn != "" { // Claude reads what it gave back only under another name: in its own turn, or in another one
		id = t.note.steerOf(t.req.Turn, req.Turn)
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

// steer notes the message before it is sent: whoever goes on with the turn must know that more is to come than
// the first result.
func (t *liveTurn) steer(ctx context.Context, id string, turn cli.TurnID, line []byte) error {
	t.notes.Lock()
	defer t.notes.Unlock()
	isNew, over := t.p.steers.Add(id, turn)
	switch {
	case over:
		return cli.ErrNoTurn
	case !isNew:
		return nil
	}
	t.note.Steers, t.note.Sending = t.p.steers.All(), id
	t.renote(ctx)
	if err := t.deliver(ctx, line); err != nil {
		return fmt.Errorf("steer claude: %w", err)
	}
	return nil
}

// deliver sends a line and waits until it is written.
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

// lastWritten is how the writing of a line went whose turn is over: Claude may have ended it with what it just read,
// before we heard that it was written.
func lastWritten(written <-chan error) error {
	select {
	case err := <-written:
		return err
	case <-time.After(noteWait):
		return cli.ErrNoTurn
	}
}

// renote records the turn's note as it is now. Without it ductor knows less after a restart.
func (t *liveTurn) renote(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteWait)
	defer cancel()
	if err := t.run.process.renote(ctx, t.req.Turn, t.note.String()); err != nil {
		t.session.provider.opts.Logger.Warn("what was sent to claude is not noted", "err", err)
	}
}

// takeBackID begins the id of a request to forget a message; the message's own id follows.
const takeBackID = "take-back-"

// interrupt cuts the turn short. What was sent in mid-turn and waits is taken back before: Claude would begin to
// work at it as soon as it has stopped.
func (t *liveTurn) interrupt() error {
	var lines []byte
	for _, id := range t.p.steers.Waiting() {
		lines = append(lines, controlLine(takeBackID+id, map[string]any{"subtype": "cancel_async_message", "message_uuid": id})...)
	}
	return t.run.stream.Send(append(lines, controlLine(interruptID, subtype("interrupt"))...))
}

// replied takes Claude's answer to a request of ours.
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
	if json.Unmarshal(r.Response, &answer) == nil && answer.Cancelled { // a Claude that does not know the request is ended
		t.p.steers.GiveBack(id)
	}
}

var _ cli.PermissionSetter = (*live)(nil)

// SetPermission has Claude work in another mode from its next tool on; see cli.PermissionSetter.
func (s *live) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	t := s.running()
	if t == nil {
		return cli.ErrNoTurn
	}
	flag, err := permissionFlag(formatLive, cli.Request{Permission: mode, Attended: t.req.Attended})
	if err != nil {
		return err
	}
	select {
	case <-t.open.asked: // before, a change that belongs to the turn's beginning may be under way
	case <-t.gone:
		return cli.ErrNoTurn
	case <-ctx.Done():
		return fmt.Errorf("set the permission mode: %w", context.Cause(ctx))
	}
	if err := s.question(ctx, map[string]any{"subtype": "set_permission_mode", "mode": flag}, nil); err != nil {
		return fmt.Errorf("set the permission mode: %w", err)
	}
	t.switched(flag)
	return nil
}

// switched records how the process works now.
func (t *liveTurn) switched(flag string) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.open.want.Permission, t.session.turnSettings.Permission = flag, flag
}
