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
		id, since, err := Expected(t.Context(), journal, c.message)
		if err != nil || c.expected != (id == question) || c.expected != since.Equal(now) {
			t.Errorf("%s: message %d expects it since %v, %v", name, id, since, err)
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

// After Clear, the user's messages are no texts that the bot asked for before. Earlier messages are not affected.
func TestAnExpectationIsCleared(t *testing.T) {
	const user = 7
	journal, in := bottest.NewJournal(), orchestrator.ConversationID{Chat: 1}
	at := func(update int64, arrived time.Time) orchestrator.Press {
		return orchestrator.Press{Conversation: in, Person: user, Updates: []int64{update}, Arrived: arrived}
	}
	now := time.Now()
	if err := Expect(at(1, now), now).Save(t.Context(), journal, in, 20, ""); err != nil {
		t.Fatal(err)
	}
	if err := Clear(t.Context(), journal, at(2, now.Add(time.Second))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		message orchestrator.Press
		since   time.Time
	}{
		"before":      {at(3, now), time.Time{}},
		"next":        {at(3, now.Add(2*time.Second)), now.Add(time.Second)},
		"an hour on":  {at(3, now.Add(time.Hour)), now.Add(time.Second)},
		"same batch":  {at(3, now.Add(time.Second)), now.Add(time.Second)},
		"batch start": {at(1, now.Add(time.Second)), time.Time{}},
	} {
		if id, since, err := Expected(t.Context(), journal, c.message); id != 0 || err != nil || !since.Equal(c.since) {
			t.Errorf("%s: message %d expects it since %v, %v", name, id, since, err)
		}
	}
}

// pressesOf returns a function that returns a message or press of one user. It has the given update, and arrives some
// time after began.
func pressesOf(in orchestrator.ConversationID, began time.Time) func(int64, time.Duration) orchestrator.Press {
	return func(update int64, after time.Duration) orchestrator.Press {
		return orchestrator.Press{Conversation: in, Person: 7, Updates: []int64{update}, Arrived: began.Add(after)}
	}
}

// Clear leaves a question that the bot asked after the message or press that is passed to Clear: the files of that
// message may have taken long to download.
func TestAnExpectationIsNewerThanClear(t *testing.T) {
	const question = 20
	in := orchestrator.ConversationID{Chat: 1}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := pressesOf(in, now)
	for name, c := range map[string]struct {
		clear    orchestrator.Press
		expected bool
	}{
		"before":             {at(4, -time.Second), true},
		"same batch, before": {at(4, 0), true},
		"same batch":         {at(6, 0), false},
		"after":              {at(6, time.Second), false},
	} {
		journal := bottest.NewJournal()
		if err := Expect(at(5, 0), now).Save(t.Context(), journal, in, question, ""); err != nil {
			t.Fatal(err)
		}
		if err := Clear(t.Context(), journal, c.clear); err != nil {
			t.Fatal(err)
		}
		id, _, err := Expected(t.Context(), journal, at(7, 2*time.Second))
		if err != nil || c.expected != (id == question) {
			t.Errorf("%s: message %d expects it, %v", name, id, err)
		}
	}
}

// After End, the user's later messages are no texts that the bot asked for before. Messages that arrived before End, and
// questions that the bot asked after it, are not affected. End changes nothing after Clear.
func TestAnExpectationEnds(t *testing.T) {
	const question = 20
	in := orchestrator.ConversationID{Chat: 1}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := pressesOf(in, now)
	for name, c := range map[string]struct {
		end, message orchestrator.Press
		expected     bool
	}{
		"next message":         {at(6, time.Second), at(7, 2*time.Second), false},
		"same batch":           {at(6, time.Second), at(7, time.Second), false},
		"message before End":   {at(7, 2*time.Second), at(6, time.Second), true},
		"same batch, before":   {at(7, time.Second), at(6, time.Second), true},
		"End before the press": {at(4, 0), at(6, time.Second), true},
		"End after patience":   {at(6, patience+time.Second), at(7, patience-time.Second), true},
	} {
		journal := bottest.NewJournal()
		if err := End(t.Context(), journal, c.end); err != nil {
			t.Errorf("%s: without a question: %v", name, err)
		}
		if err := Expect(at(5, 0), now).Save(t.Context(), journal, in, question, ""); err != nil {
			t.Fatal(err)
		}
		if err := End(t.Context(), journal, c.end); err != nil {
			t.Fatal(err)
		}
		if id, _, err := Expected(t.Context(), journal, c.message); err != nil || c.expected != (id == question) {
			t.Errorf("%s: message %d expects it, %v", name, id, err)
		}
		if err := Clear(t.Context(), journal, at(5, 0)); err != nil {
			t.Fatal(err)
		}
		if err := End(t.Context(), journal, c.end); err != nil {
			t.Fatal(err)
		}
		if id, since, err := Expected(t.Context(), journal, c.message); id != 0 || !since.Equal(now) || err != nil {
			t.Errorf("%s: after Clear, message %d expects it since %v, %v", name, id, since, err)
		}
	}
}
