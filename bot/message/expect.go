package message

import (
	"context"
	"strconv"
	"time"

	"ductor/orchestrator"
)

// Expectation describes for how long, and from whom, a message of the bot expects a text after the press of a button.
// Within this time, the user's next message is the text, although it is no reply. The database stores an Expectation.
type Expectation struct {
	From    orchestrator.PersonID `json:"from,omitempty"`
	Until   time.Time             `json:"until,omitzero"`
	Pressed time.Time             `json:"pressed,omitzero"` // arrival of the press
	Press   int64                 `json:"press,omitempty"`  // update of the press
}

// patience is the time after the press in which the user's next message counts as the expected text. A later message is
// a prompt, unless it is a reply.
const patience = 10 * time.Minute

// Expect returns the Expectation of a message that asks for a text because the user pressed a button.
func Expect(by orchestrator.Press, now time.Time) Expectation {
	e := expectationOf(by)
	e.Until = now.Add(patience)
	return e
}

// expectationOf returns an Expectation that contains only a press.
func expectationOf(by orchestrator.Press) Expectation {
	return Expectation{From: by.Person, Pressed: by.Arrived, Press: UpdateOf(by)}
}

// UpdateOf returns the ID of the first update of a press or message. It returns 0 if there is none.
func UpdateOf(by orchestrator.Press) int64 {
	if len(by.Updates) == 0 {
		return 0
	}
	return by.Updates[0]
}

// Accepts reports whether a user's message counts as the expected text. It checks when the message arrived, not the
// current time, because ductor may handle the message again much later.
func (e Expectation) Accepts(m orchestrator.Press) bool {
	return m.Person == e.From && !e.follows(m) && m.Arrived.Before(e.Until)
}

// follows reports whether a message arrived before the press. Updates of one batch arrive at the same time, so follows
// then compares their IDs.
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
	Message int         `json:"message,omitempty"` // ID of the message; 0 if only its key is known
	Key     string      `json:"key,omitempty"`     // key of the message
	Cleared bool        `json:"cleared,omitempty"` // set by Clear, whose press Expectation then contains
	Ended   Expectation `json:"ended,omitzero"`    // set by End, whose press it contains
}

// accepts is like Expectation.Accepts, but rejects messages after the press that was passed to End.
func (a asking) accepts(m orchestrator.Press) bool {
	return a.Accepts(m) && (a.Ended == Expectation{} || a.Ended.follows(m))
}

func askingKey(in orchestrator.ConversationID, user orchestrator.PersonID) string {
	return "expects@" + string(in.Key()) + "/" + strconv.FormatInt(int64(user), 10)
}

// Save stores e as the last expectation of its user in a conversation. The message that asks has an ID or, before it is
// sent, only a key.
func (e Expectation) Save(ctx context.Context, in orchestrator.CardStore, conversation orchestrator.ConversationID,
	id int, key string) error {
	return SaveValue(ctx, in, askingKey(conversation, e.From), asking{Expectation: e, Message: id, Key: key})
}

// Clear ends the last expectation of a user, because the user starts something else, such as a new session. Clear does
// nothing if the bot asked after by.
func Clear(ctx context.Context, in orchestrator.CardStore, by orchestrator.Press) error {
	a, _, err := LoadValue[asking](ctx, in, askingKey(by.Conversation, by.Person))
	if err != nil || a.follows(by) {
		return err
	}
	cleared := asking{Expectation: expectationOf(by), Cleared: true}
	return SaveValue(ctx, in, askingKey(by.Conversation, by.Person), cleared)
}

// End ends the last expectation of a user, because the user does something else, such as a command. A reply to the
// message that asks still counts as the text. Unlike Clear, End does not affect older approvals and questions of the
// agent. End does nothing if the bot asked after by.
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

// Expected returns the ID of the last message in which the bot asked the user for a text, if m counts as this text. The
// time since is the arrival of the press that caused the question. The caller must check whether the message still
// asks.
//
// Otherwise, Expected returns the ID 0. If Clear ended the expectation before m arrived, since is the arrival of the
// press passed to Clear.
func Expected(ctx context.Context, in Journal, m orchestrator.Press) (id int, since time.Time, err error) {
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
