package changes

import (
	"context"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// question is the question for the message of a commit that is open for a turn. The database stores it, so that at most
// one question of a turn has buttons.
type question struct {
	Key string `json:"key"` // key of the message with the question; empty if no question is open
	// Answer is the message whose button led to the question, and Buttons are its other buttons. After the commit, only
	// those remain.
	Answer  int            `json:"answer,omitempty"`
	Buttons tgapi.Keyboard `json:"buttons,omitempty"`
}

func questionKey(turn string) string { return "commit:" + turn }

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

// closeQuestion records that no question for the turn is open. It deletes the message with the open question, unless
// this is the message with the given ID, which the caller edits. If Telegram does not allow to delete the message, the
// message shows the text.
func (s *Screen) closeQuestion(ctx context.Context, in orchestrator.ConversationID, turn string, except int,
	text string) error {
	q, _, err := message.LoadValue[question](ctx, s.o.Journal, questionKey(turn))
	if err != nil || q.Key == "" {
		return err
	}
	if err := s.openQuestion(ctx, turn, question{}); err != nil {
		return err
	}
	m, err := s.o.Store.FindMessage(ctx, q.Key)
	if err != nil || m.ID == 0 || m.ID == except {
		return err
	}
	s.o.Messages.Replace(q.Key, in, message.Content{Text: render.Plain(text), Lifecycle: message.DeleteWhenDone})
	return nil
}
