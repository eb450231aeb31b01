package changes

import (
	"context"

	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// controls describes the two messages that have a button Undo or Redo of a turn: the answer, and the newest report of
// an undo or a redo. The database stores controls, so that a press in one message can also change the buttons of the
// other message.
type controls struct {
	Answer  int            `json:"answer,omitempty"`  // ID of the answer's message; 0 if its buttons are unknown
	Buttons tgapi.Keyboard `json:"buttons,omitempty"` // all buttons of the answer
	Receipt string         `json:"receipt,omitempty"` // key of the newest report; empty for none
}

func controlsKey(turn string) string { return "undo:" + turn }

// switchControls is called after a user has pressed Undo or Redo. report is the new message about the effect, with the
// opposite button. switchControls gives the opposite button to the answer too, and removes the button of the previous
// report. It returns the button that replaces the pressed one. If the user pressed the button of the previous report,
// the returned button is empty.
func (s *Screen) switchControls(ctx context.Context, on tgapi.Pressed, turn string, pressed, opposite tgapi.Button,
	report orchestrator.Message) (tgapi.Button, error) {
	c, _, err := message.LoadValue[controls](ctx, s.o.Journal, controlsKey(turn))
	if err != nil {
		return opposite, err
	}
	former := 0
	if c.Receipt != "" {
		m, err := s.o.Store.FindMessage(ctx, c.Receipt)
		if err != nil {
			return opposite, err
		}
		former = m.ID
	}
	instead := opposite
	if former == on.Message {
		instead = tgapi.Button{}
		if c.Buttons = c.Buttons.Replaced(pressed.Data, opposite); c.Answer != 0 {
			s.o.Rebutton(report.Conversation, c.Answer, c.Buttons)
		}
	} else {
		c.Answer, c.Buttons = 0, on.Buttons.Replaced(pressed.Data, opposite)
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

// saveButtons stores the buttons that an answer has after a commit.
func (s *Screen) saveButtons(ctx context.Context, turn string, answer int, k tgapi.Keyboard) error {
	c, _, err := message.LoadValue[controls](ctx, s.o.Journal, controlsKey(turn))
	if err != nil || c.Answer != answer {
		return err
	}
	c.Buttons = k
	return message.SaveValue(ctx, s.o.Journal, controlsKey(turn), c)
}
