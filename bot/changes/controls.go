package changes

import (
	"context"

	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// controls describes the messages with the button Undo or Redo of a turn: the answer, and the newest message that
// reports an undo or a redo. The database stores it, so that a press below one message also changes the other one.
type controls struct {
	Answer  int            `json:"answer,omitempty"` // ID of the message; 0 if its buttons are unknown
	Buttons tgapi.Keyboard `json:"buttons,omitempty"`
	Receipt string         `json:"receipt,omitempty"` // key of the message; empty for none
}

func controlsKey(turn string) string { return "undo:" + turn }

// switchControls records that a user pressed the button was, and that a new message reports the effect and has the
// button now. The answer gets the new button too, and the former report loses its button. switchControls returns the
// button that replaces the pressed one.
func (s *Screen) switchControls(ctx context.Context, on tgapi.Pressed, turn string, was, now tgapi.Button,
	report orchestrator.Message) (tgapi.Button, error) {
	c, _, err := message.LoadValue[controls](ctx, s.o.Journal, controlsKey(turn))
	if err != nil {
		return now, err
	}
	former := 0
	if c.Receipt != "" {
		m, err := s.o.Store.FindMessage(ctx, c.Receipt)
		if err != nil {
			return now, err
		}
		former = m.ID
	}
	instead := now
	if former == on.Message {
		instead = tgapi.Button{}
		if c.Buttons = c.Buttons.Replaced(was.Data, now); c.Answer != 0 {
			s.o.Rebutton(report.Conversation, c.Answer, c.Buttons)
		}
	} else {
		c.Answer, c.Buttons = 0, on.Buttons.Replaced(was.Data, now)
		if c.Buttons != nil {
			c.Answer = on.Message
		}
		if former != 0 {
			s.o.Rebutton(report.Conversation, former, nil)
		}
	}
	c.Receipt = report.Key
	return instead, message.SaveValue(ctx, s.o.Journal, controlsKey(turn), c)
}

// rebuttoned records that a commit has changed the buttons of an answer.
func (s *Screen) rebuttoned(ctx context.Context, turn string, answer int, k tgapi.Keyboard) error {
	c, _, err := message.LoadValue[controls](ctx, s.o.Journal, controlsKey(turn))
	if err != nil || c.Answer != answer {
		return err
	}
	c.Buttons = k
	return message.SaveValue(ctx, s.o.Journal, controlsKey(turn), c)
}
