package card

import (
	"context"

	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// Lost describes a turn whose card Telegram rejects, because the user has blocked the bot or the bot may not write to
// the chat. See Options.Lost.
type Lost struct {
	Turn  cli.TurnID
	In    orchestrator.ConversationID
	Asker orchestrator.PersonID // user who sent the prompt; 0 if no user sent it
	Ended bool                  // true if the turn has ended; ShowAgain can then show its result later
}

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

// retryLostChat makes the card send messages again, after Telegram has rejected a message because the bot may not write
// to the chat. It returns false if Telegram has rejected no message for this reason.
func (s *messages) retryLostChat() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != chatGone {
		return false
	}
	s.lost = tellLoss
	return true
}
