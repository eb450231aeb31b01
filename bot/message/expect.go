package message

import (
	"context"
	"fmt"
	"time"

	"ductor/orchestrator"
)

// expectation is the message of the bot that asked a user for a text last. It is stored in the database.
type expectation struct {
	Message int    `json:"message,omitempty"` // ID of the message; 0 if only its key is known, or if none asks
	Key     string `json:"key,omitempty"`     // key of the message
	// Pressed and Updates are the arrival and the updates of the press after which the message asked.
	Pressed time.Time `json:"pressed,omitzero"`
	Updates []int64   `json:"updates,omitempty"`
}

// precededBy reports whether a message arrived before the press. Updates of one batch arrive at the same time, so
// precededBy then compares their IDs.
func (e expectation) precededBy(m orchestrator.Press) bool {
	if !m.Arrived.Equal(e.Pressed) {
		return m.Arrived.Before(e.Pressed)
	}
	return len(m.Updates) > 0 && len(e.Updates) > 0 && m.Updates[0] < e.Updates[0]
}

func expectationKey(by orchestrator.Press) string {
	return fmt.Sprint("expects@", by.Conversation.Key(), "/", by.Person)
}

// Expect records that a message of the bot asks a user for a text, so that the user's next message can be this text
// although it is no reply. The message has an ID or, before it is sent, only a key. Without both, no message asks.
func Expect(ctx context.Context, in orchestrator.CardStore, by orchestrator.Press, id int, key string) error {
	return SaveValue(ctx, in, expectationKey(by), expectation{
		Message: id, Key: key, Pressed: by.Arrived, Updates: by.Updates,
	})
}

// Journal finds messages, and stores which of them ask for a text.
type Journal interface {
	orchestrator.CardStore
	FindMessage(ctx context.Context, key string) (orchestrator.Message, error)
}

// Expected returns the ID of the message that asked a user for a text last, and the time of the press after which it
// asked. It returns 0 if there is none, or if by is older than the press. The caller must check whether the message still
// asks.
func Expected(ctx context.Context, in Journal, by orchestrator.Press) (id int, since time.Time, err error) {
	e, _, err := LoadValue[expectation](ctx, in, expectationKey(by))
	switch {
	case err != nil || e.precededBy(by):
		return 0, time.Time{}, err
	case e.Key == "":
		return e.Message, e.Pressed, nil
	}
	m, err := in.FindMessage(ctx, e.Key)
	return m.ID, e.Pressed, err
}
