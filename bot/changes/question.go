package changes

import (
	"context"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// question describes the open question for the commit message of a turn. The database stores it, so that at most one
// such question of a turn has buttons.
type question struct {
	Key string `json:"key"` // key of the message with the question; empty if no question is open
	// Answer is the ID of the message with the button that opened the question. Buttons contains the buttons that this
	// message has after the commit: all others.
	Answer  int            `json:"answer,omitempty"`
	Buttons tgapi.Keyboard `json:"buttons,omitempty"`
}

func questionKey(turn string) string { return "commit:" + turn }

// openQuestion records that the bot asks a user for a commit message. The user must send the commit message as a reply.
// Otherwise ductor could commit with the text of the user's next prompt, and users cannot undo a commit in the chat.
func (s *Screen) openQuestion(ctx context.Context, turn string, q question) error {
	return message.SaveValue(ctx, s.o.Journal, questionKey(turn), q)
}

// isComing reports whether a question for the turn is open and not in the chat yet.
func (s *Screen) isComing(ctx context.Context, turn string) (bool, error) {
	q, _, err := message.LoadValue[question](ctx, s.o.Journal, questionKey(turn))
	if err != nil || q.Key == "" {
		return false, err
	}
	m, err := s.o.Store.FindMessage(ctx, q.Key)
	return m.State == orchestrator.Pending || m.State == orchestrator.Sending, err
}

// closeQuestion records that no question for the turn is open, and deletes the message with the question. If edited is
// the ID of this message, closeQuestion does not delete it, because the caller edits it. If Telegram does not allow the
// deletion, the message shows the given text.
func (s *Screen) closeQuestion(ctx context.Context, in orchestrator.ConversationID, turn string, edited int,
	text string) error {
	q, _, err := message.LoadValue[question](ctx, s.o.Journal, questionKey(turn))
	if err != nil || q.Key == "" {
		return err
	}
	if err := message.SaveValue(ctx, s.o.Journal, questionKey(turn), question{}); err != nil {
		return err
	}
	m, err := s.o.Store.FindMessage(ctx, q.Key)
	if err != nil || m.ID == 0 || m.ID == edited {
		return err
	}
	s.o.Messages.Replace(q.Key, in, message.Content{Text: render.Plain(text), Lifecycle: message.DeleteWhenDone})
	return nil
}
