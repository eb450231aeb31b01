package card

import (
	"context"
	"fmt"
	"math"
	"sync"

	"ductor/cli"
	"ductor/orchestrator"
)

// record is what the journal has of a card.
type record struct {
	turn    cli.TurnID
	journal cardJournal

	writing sync.Mutex // held during a write, so that the journal has the newest state
	final   bool       // it has the final content
	kept    savedCard  // else its last snapshot
}

// saved records what is already true, also for a cancelled caller.
func (r *record) saved(ctx context.Context, part int, state orchestrator.SendState, message int) error {
	return r.save(context.WithoutCancel(ctx), part, state, message)
}

func (r *record) save(ctx context.Context, part int, state orchestrator.SendState, message int) error {
	if err := r.journal.SaveCardPart(ctx, string(r.turn), part, state, message); err != nil {
		return fmt.Errorf("record a message of a card: %w", err)
	}
	return nil
}

// store writes down what the messages are to show in the end.
func (s *messages) store(ctx context.Context, content contents) error {
	data, err := content.encode(s.where().Topic)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.journal.SaveCard(ctx, string(s.turn), data); err != nil {
		return fmt.Errorf("store a card: %w", err)
	}
	s.final = true
	return nil
}

// pack is a position in a document as the journal keeps it with a message that is being sent, in place of the
// number that the message does not have yet. It is never above zero, as those are.
func pack(p position) int { return -(p.segment<<32 | min(p.offset, math.MaxInt32)) }

// unpack undoes pack; the zero position for what pack did not make.
func unpack(n int) position {
	if n >= 0 || n == math.MinInt {
		return position{}
	}
	return position{segment: -n >> 32, offset: -n & math.MaxUint32}
}
