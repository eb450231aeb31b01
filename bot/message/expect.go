package message

import (
	"context"
	"strconv"
	"time"

	"ductor/orchestrator"
)

// Expectation means that the bot asks a user for a text after the user pressed a button. Until a deadline, the user's
// next message is the text, even if the message is not a reply. The database stores an Expectation.
type Expectation struct {
	From    orchestrator.PersonID `json:"from,omitempty"`
	Until   time.Time             `json:"until,omitzero"`
	Pressed time.Time             `json:"pressed,omitzero"` // time when the button press arrived
	Press   int64                 `json:"press,omitempty"`  // ID of the update with the button press
}

// patience is the time after the button press in which the user's next message counts as the expected text. A later
// message only counts if it is a reply. Otherwise it is a prompt.
const patience = 10 * time.Minute

// Expect returns the Expectation of a message that asks for a text because the user pressed a button.
func Expect(by orchestrator.Press, now time.Time) Expectation {
	e := expectationOf(by)
	e.Until = now.Add(patience)
	return e
}

// expectationOf returns an Expectation with the user, time and update of an action, but without a deadline.
func expectationOf(by orchestrator.Press) Expectation {
	return Expectation{From: by.Person, Pressed: by.Arrived, Press: UpdateOf(by)}
}

// UpdateOf returns the ID of the first update of a user's action, or 0 if the action has no update.
func UpdateOf(by orchestrator.Press) int64 {
	if len(by.Updates) == 0 {
		return 0
	}
	return by.Updates[0]
}

// Accepts reports whether a user's message counts as the expected text. The message must have arrived before the
// deadline. The current time does not matter, because ductor may handle the message again much later.
func (e Expectation) Accepts(m orchestrator.Press) bool {
	return m.Person == e.From && !e.follows(m) && m.Arrived.Before(e.Until)
}

// follows reports whether the button press in e came after the user's message or action m. Updates of one batch arrive
// at the same time, so follows then compares their IDs.
func (e Expectation) follows(m orchestrator.Press) bool {
	if !m.Arrived.Equal(e.Pressed) {
		return m.Arrived.Before(e.Pressed)
	}
	return len(m.Updates) > 0 && m.Updates[0] < e.Press
}

// asking identifies the last message in which the bot asked a user for a text. The database stores one per user and
// conversation.
type asking struct {
	Expectation
	Message int    `json:"message,omitempty"` // ID of the message; 0 if only its key is known
	Key     string `json:"key,omitempty"`     // key of the message
	// Cleared is true if Clear ended the expectation. Expectation then contains the user's action that was passed to
	// Clear.
	Cleared bool `json:"cleared,omitempty"`
	// Ended describes the user's action that was passed to End. It is zero if End was not called.
	Ended Expectation `json:"ended,omitzero"`
}

// accepts is like Expectation.Accepts, but rejects messages that came after the action in a.Ended.
func (a asking) accepts(m orchestrator.Press) bool {
	return a.Accepts(m) && (a.Ended == Expectation{} || a.Ended.follows(m))
}

func askingKey(in orchestrator.ConversationID, user orchestrator.PersonID) string {
	return "expects@" + string(in.Key()) + "/" + strconv.FormatInt(int64(user), 10)
}

// Save stores that the bot asks the user for a text in a conversation. This replaces the user's previous Expectation in
// the conversation. id is the ID of the bot's message. If the message is not sent yet, id is 0, and key is its key.
func (e Expectation) Save(ctx context.Context, in orchestrator.CardStore, conversation orchestrator.ConversationID,
	id int, key string) error {
	return SaveValue(ctx, in, askingKey(conversation, e.From), asking{Expectation: e, Message: id, Key: key})
}

// Clear ends a user's Expectation after the user has started something else, such as a new session. by is this action
// of the user. Clear does nothing if the Expectation is newer than this action.
func Clear(ctx context.Context, in orchestrator.CardStore, by orchestrator.Press) error {
	a, _, err := LoadValue[asking](ctx, in, askingKey(by.Conversation, by.Person))
	if err != nil || a.follows(by) {
		return err
	}
	cleared := asking{Expectation: expectationOf(by), Cleared: true}
	return SaveValue(ctx, in, askingKey(by.Conversation, by.Person), cleared)
}

// End ends a user's Expectation after the user has done something else, such as sending a command. A reply to the bot's
// message still counts as the text. Unlike Clear, End does not affect older approvals and questions of the agent. by is
// this action of the user. End does nothing if the Expectation is newer than this action.
func End(ctx context.Context, in orchestrator.CardStore, by orchestrator.Press) error {
	a, _, err := LoadValue[asking](ctx, in, askingKey(by.Conversation, by.Person))
	if err != nil || !a.accepts(by) {
		return err
	}
	a.Ended = expectationOf(by)
	return SaveValue(ctx, in, askingKey(by.Conversation, by.Person), a)
}

// Journal finds messages, and stores which of them ask for a text.
type Journal interface {
	orchestrator.CardStore
	FindMessage(ctx context.Context, key string) (orchestrator.Message, error)
}

// Expected returns the ID of the last message in which the bot asked the user for a text, if m counts as this text. It
// also returns the time when the user pressed the button. The caller must check whether the bot's message still asks
// for a text.
//
// Otherwise, Expected returns the ID 0. If Clear was called for an action of the user before m, Expected also returns
// the time of this action.
func Expected(ctx context.Context, in Journal, m orchestrator.Press) (id int, acted time.Time, err error) {
	a, _, err := LoadValue[asking](ctx, in, askingKey(m.Conversation, m.Person))
	switch {
	case err != nil:
		return 0, time.Time{}, err
	case a.Cleared && !a.follows(m):
		return 0, a.Pressed, nil
	case !a.accepts(m):
		return 0, time.Time{}, nil
	case a.Key == "":
		return a.Message, a.Pressed, nil
	}
	asks, err := in.FindMessage(ctx, a.Key)
	if err != nil || asks.ID == 0 { // the message is not sent yet
		return 0, time.Time{}, err
	}
	return asks.ID, a.Pressed, nil
}
