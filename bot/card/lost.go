package card

import (
	"context"

	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// Lost is passed to Options.Lost. It describes a turn whose card Telegram rejects because the user has blocked the bot
// or the bot may not write to the chat.
type Lost struct {
	Turn  cli.TurnID
	In    orchestrator.ConversationID
	Asker orchestrator.PersonID // the user who sent the prompt; 0 if none did
	Ended bool                  // the turn has ended, so ShowAgain can show its result later
}

// reportLost calls Options.Lost if the bot may not write to the card's chat.
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

// retryLostChat makes the card try its chat again if the bot could not write to it while the turn ran. It returns false
// if the bot could.
func (s *messages) retryLostChat() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != chatGone {
		return false
	}
	s.lost = tellLoss
	return true
}
