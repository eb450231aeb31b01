package card

import (
	"context"
	"fmt"
	"math"

	"ductor/orchestrator"
)

// saved records what is already true, so it must not be kept from it by a cancelled caller.
func (s *messages) saved(ctx context.Context, part int, state orchestrator.SendState, message int) error {
	return s.save(context.WithoutCancel(ctx), part, state, message)
}

func (s *messages) save(ctx context.Context, part int, state orchestrator.SendState, message int) error {
	if err := s.journal.SaveCardPart(ctx, string(s.turn), part, state, message); err != nil {
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
	s.journaling.Lock()
	defer s.journaling.Unlock()
	if err := s.journal.SaveCard(ctx, string(s.turn), data); err != nil {
		return fmt.Errorf("store a card: %w", err)
	}
	s.final = true
	return nil
}

// pack is a place in a document as the journal keeps it with a message that is on its way, in place of the
// number that the message does not have yet. It is never above zero, as those are.
func pack(p position) int { return -(p.segment<<32 | min(p.offset, math.MaxInt32)) }

// unpack undoes pack; the zero position for what pack did not make.
func unpack(n int) position {
	if n >= 0 || n == math.MinInt {
		return position{}
	}
	return position{segment: -n >> 32, offset: -n & math.MaxUint32}
}
