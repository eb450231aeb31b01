package card

import (
	"context"

	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// Lost is a turn whose card the chat rejects: the user blocked the bot, or the chat does not allow it to write.
type Lost struct {
	Turn  cli.TurnID
	In    orchestrator.ConversationID
	Asker orchestrator.PersonID // the user who sent the prompt; 0 for none
	Ended bool                  // the turn has ended, so ShowAgain can show the outcome later
}

// reportLost calls Options.Lost for a card that the chat rejects.
func (c *Cards) reportLost(ctx context.Context, s *messages, ended bool) {
	s.mu.Lock()
	l := Lost{Turn: s.turn.ID, In: s.conv, Asker: s.turn.Prompt.Person, Ended: ended}
	gone := s.lost == chatGone
	s.mu.Unlock()
	for _, m := range []*message.Message{s.notice, s.file, s.end} {
		gone = gone || m.Refusal() == tgapi.ChatGone
	}
	if gone && c.opts.Lost != nil {
		c.opts.Lost(ctx, l)
	}
}

// retryLostChat resets a card whose chat rejected everything while the turn ran, so that it is sent again. It returns
// false if the card needs no reset.
func (s *messages) retryLostChat() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != chatGone {
		return false
	}
	s.lost = tellLoss
	return true
}
