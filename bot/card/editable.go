package card

import (
	"context"
	"fmt"
	"strings"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// QueuedKey returns the database key of a turn's card in the queue.
func QueuedKey(turn cli.TurnID) string { return "queued/" + string(turn) }

// Editable returns the message with a pressed button, or 0 if the handler of the button must not edit the message. what is
// the data of the button without its action. A modified Telegram client can send any data and name any message of the
// bot.
//
// If Telegram reports no buttons, the message could be any other one. It is then editable only if it shows the turn of
// the button, and if the user could press the other buttons of the turn, too.
func Editable(ctx context.Context, in orchestrator.MessageStore, by orchestrator.Press, on tgapi.Pressed,
	what string) (int, error) {
	switch {
	case on.Buttons != nil:
		return on.Message, nil
	case !by.May(orchestrator.ChangeSettings):
		return 0, nil
	}
	m, err := in.MessageAt(ctx, by.Conversation, on.Message)
	if err != nil {
		return 0, fmt.Errorf("find the message of a button: %w", err)
	}
	turn := cli.TurnID(what[strings.LastIndexByte(what, '@')+1:]) // an account or a mode can stand before the turn
	if turn != "" && (strings.HasPrefix(m.Key, cardKey(turn)+"/") || m.Key == QueuedKey(turn)) {
		return on.Message, nil
	}
	return 0, nil
}
