package message

import (
	"context"
	"fmt"

	"ductor/orchestrator"
)

// expectation is the message of the bot that asked a user for a text last. It is stored in the database.
type expectation struct {
	Message int    `json:"message,omitempty"` // ID of the message; 0 if only its key is known, or if none asks
	Key     string `json:"key,omitempty"`     // key of the message
}

func expectationKey(by orchestrator.Press) string {
	return fmt.Sprint("expects@", by.Conversation.Key(), "/", by.Person)
}

// Expect records that a message of the bot asks a user for a text, so that the user's next message can be this text
// although it is no reply. The message has an ID or, before it is sent, only a key. Without both, no message asks.
func Expect(ctx context.Context, in orchestrator.CardStore, by orchestrator.Press, id int, key string) error {
	return SaveValue(ctx, in, expectationKey(by), expectation{Message: id, Key: key})
}

// Journal finds messages, and stores which of them ask for a text.
type Journal interface {
	orchestrator.CardStore
	FindMessage(ctx context.Context, key string) (orchestrator.Message, error)
}

// Expected returns the ID of the message that asked a user for a text last, or 0. The caller must check whether that
// message still asks.
func Expected(ctx context.Context, in Journal, by orchestrator.Press) (int, error) {
	e, _, err := LoadValue[expectation](ctx, in, expectationKey(by))
	if err != nil || e.Key == "" {
		return e.Message, err
	}
	m, err := in.FindMessage(ctx, e.Key)
	return m.ID, err
}
