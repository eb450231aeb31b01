package message

import (
	"testing"
	"time"

	"ductor/bot/bottest"
	"ductor/orchestrator"
)

// The next message of a user is the expected text if it arrived after the press and within ten minutes. When ductor
// handles it does not matter.
func TestTheMessageThatAQuestionExpects(t *testing.T) {
	const user, question, sent = 7, 43, 44
	in := orchestrator.ConversationID{Chat: user}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	message := func(user orchestrator.PersonID, update int64, after time.Duration) orchestrator.Press {
		return orchestrator.Press{Conversation: in, Person: user, Updates: []int64{update}, Arrived: now.Add(after)}
	}
	elsewhere := message(user, 6, time.Second)
	elsewhere.Conversation.Topic = 9
	for name, c := range map[string]struct {
		message  orchestrator.Press
		expected bool
	}{
		"next message":             {message(user, 6, time.Second), true},
		"same batch":               {message(user, 6, 0), true},
		"same batch, before":       {message(user, 4, 0), false},
		"before, with a higher ID": {message(user, 6, -time.Second), false},
		"last second":              {message(user, 6, patience-time.Second), true},
		"too late":                 {message(user, 6, patience), false},
		"of another user":          {message(user+1, 6, time.Second), false},
		"in another conversation":  {elsewhere, false},
	} {
		journal := bottest.NewJournal()
		if id, _, err := Expected(t.Context(), journal, c.message); id != 0 || err != nil {
			t.Errorf("%s: without a question, message %d expects a text, %v", name, id, err)
		}
		press := message(user, 5, 0)
		if err := Expect(press, now).Save(t.Context(), journal, in, question, ""); err != nil {
			t.Fatal(err)
		}
		id, e, err := Expected(t.Context(), journal, c.message)
		if err != nil || c.expected != (id == question) || c.expected != e.Pressed.Equal(now) {
			t.Errorf("%s: message %d expects it since %v, %v", name, id, e.Pressed, err)
		}
		if err := Expect(press, now).Save(t.Context(), journal, in, 0, "a key"); err != nil {
			t.Fatal(err)
		}
		if id, _, err := Expected(t.Context(), journal, c.message); id != 0 || err != nil {
			t.Errorf("%s: before the question is sent, message %d expects it, %v", name, id, err)
		}
		if err := journal.SaveMessage(t.Context(), orchestrator.Message{Key: "a key", ID: sent}); err != nil {
			t.Fatal(err)
		}
		if id, _, err := Expected(t.Context(), journal, c.message); err != nil || c.expected != (id == sent) {
			t.Errorf("%s: message %d expects it, %v", name, id, err)
		}
	}
}
