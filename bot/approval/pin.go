package approval

import (
	"context"
	"fmt"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/tgapi"
)

// pinAfter is how long an approval must be open before its message is pinned. Users decide most approvals sooner.
const pinAfter = 10 * time.Second

// pin pins the message of an open approval after pinAfter, and unpins it as soon as the approval is closed.
func (s *Screen) pin(e *entry) {
	if s.o.Pins == nil {
		return
	}
	id := e.message.ID()
	s.mu.Lock()
	open := e.open()
	wanted := open && id != 0 && e.pinAsked != id && e.pinAsked != pinRefused || !open && e.draft.Pinned != 0
	if open && e.pinAsked != pinRefused {
		e.pinAsked = id
	}
	s.mu.Unlock()
	switch {
	case !wanted:
	case open: // wait with a timer, because a request that waits in the outbox would delay ductor's shutdown
		time.AfterFunc(pinAfter, func() { s.postPin(e, id, true) })
	default:
		s.postPin(e, id, false)
	}
}

// postPin asks the outbox to pin or unpin a message. Unpinning is more urgent: as long as a message is pinned, it asks
// users to decide.
func (s *Screen) postPin(e *entry, id int, pin bool) {
	priority := outbox.Housekeeping
	if !pin {
		priority = outbox.Awaited
	}
	s.o.Outbox.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(e.conv.Chat), Priority: priority, Idempotent: true,
		Key: fmt.Sprint(keyPrefix, e.id, "/pin/", pin),
		Run: func(ctx context.Context) error { return s.makePin(ctx, e, id, pin) },
	}, func(err error) {
		if err != nil {
			e.log.Debug("an approval was not pinned or unpinned", "err", err)
		}
	})
}

// makePin pins or unpins a message. Before makePin pins a message, it stores the message's ID, so that the next process
// can unpin the message after a crash.
func (s *Screen) makePin(ctx context.Context, e *entry, id int, pin bool) error {
	s.mu.Lock()
	open, was := e.open(), e.draft.Pinned
	s.mu.Unlock()
	switch {
	case pin && open && id == e.message.ID():
		if err := s.recordPin(ctx, e, id); err != nil {
			return err
		}
		err := s.o.Pins.Pin(ctx, e.conv.Chat, id)
		if tgapi.FaultOf(err).Kind == tgapi.BadRequest {
			s.mu.Lock()
			e.pinAsked = pinRefused
			s.mu.Unlock()
			return s.recordPin(ctx, e, 0)
		}
		return err
	case !pin && !open && was != 0:
		if err := s.o.Pins.Unpin(ctx, e.conv.Chat, was); err != nil && tgapi.FaultOf(err).Kind != tgapi.BadRequest {
			return err
		}
		return s.recordPin(ctx, e, 0)
	}
	return outbox.ErrNotNeeded
}

// recordPin stores the ID of the pinned message, or 0 if no message is pinned.
func (s *Screen) recordPin(ctx context.Context, e *entry, id int) error {
	_, err := s.saveDraft(ctx, e, func(d *draft) bool {
		d.Pinned = id
		return true
	})
	return err
}
