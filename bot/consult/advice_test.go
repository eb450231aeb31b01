package consult

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ductor/bot/bottest"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// desk records prompts. It has the entries "advice" of Codex in session "s", and "turn".
type desk struct {
	orchestrator.Consults
	agent   cli.Agent
	session orchestrator.SessionID // the current one
	prompts []orchestrator.Prompt
	full    bool
	err     error
}

func (d *desk) Status(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
	return orchestrator.Status{Agent: d.agent, Session: orchestrator.Session{ID: d.session}}, nil
}

func (d *desk) Submit(_ context.Context, p orchestrator.Prompt, _ orchestrator.Wants) (orchestrator.Receipt, error) {
	if d.err == nil && !d.full {
		d.prompts = append(d.prompts, p)
	}
	return orchestrator.Receipt{Full: d.full}, d.err
}

func (d *desk) Resume(_ context.Context, _ orchestrator.ConversationID,
	id orchestrator.SessionID) (orchestrator.Session, error) {
	d.session = id
	return orchestrator.Session{ID: id}, nil
}

func (d *desk) Entry(_ context.Context, in orchestrator.ConversationID, id cli.TurnID) (orchestrator.Turn, error) {
	entry := orchestrator.Turn{ID: id, Session: "s", Agent: "codex", Prompt: orchestrator.Prompt{Text: "Which?"},
		Outcome: orchestrator.Outcome{Text: "That one."}}
	switch {
	case id == "advice" && in == here:
		entry.Entry.Kind = orchestrator.ConsultationEntry
		return entry, nil
	case id == "turn" && in == here:
		return entry, nil
	case id == "advice":
		return entry, orchestrator.ErrElsewhere
	}
	return entry, orchestrator.ErrNoTurn
}

type journal struct{ *bottest.Journal }

func (journal) FinishUpdates(context.Context, []int64, ...orchestrator.Message) error { return nil }

var here = orchestrator.ConversationID{Chat: -5}

func press(update int64, role orchestrator.UserRole) orchestrator.Press {
	return orchestrator.Press{Conversation: here, Person: 3, Role: role, Updates: []int64{update}}
}

// However often it is pressed, and whatever fails in between, an answer is given to the agent of the conversation once:
// as a turn in the session of the answer, with the rights of the user.
func TestAnAnswerIsGivenOnce(t *testing.T) {
	d, kept := &desk{agent: "claude", session: "other"}, journal{bottest.NewJournal()}
	screen := func() *Screen { return New(Options{Consults: d, Desk: d, Entries: d, Journal: kept}) } // after a restart
	button := giveButton(screen().o.Lang.Of(here.Chat), "advice", "claude")
	if button.Text != "➡️ Give to Claude" || len(button.Data) > tgapi.DataLimit {
		t.Errorf("the button is %+v", button)
	}
	data := strings.TrimPrefix(button.Data, Action+":")
	give := func(by orchestrator.Press, data string) (tgapi.Answer, error) {
		return screen().Press(t.Context(), by, 40, data)
	}
	for data, want := range map[string]error{"g:turn:x": orchestrator.ErrNoTurn, "g:none:x": orchestrator.ErrNoTurn,
		"g": orchestrator.ErrNoTurn, "o:turn": orchestrator.ErrNoTurn} {
		if _, err := give(press(1, orchestrator.RoleUser), data); !errors.Is(err, want) {
			t.Errorf("%q: %v", data, err)
		}
	}
	elsewhere := press(1, orchestrator.RoleOwner)
	elsewhere.Conversation.Chat = 7
	if _, err := give(elsewhere, data); !errors.Is(err, orchestrator.ErrElsewhere) {
		t.Errorf("from another chat: %v", err)
	}
	// A member's prompts need the member's name, and a member must not change the session that the chat continues.
	if _, err := give(press(1, orchestrator.RoleMember), data); !errors.Is(err, orchestrator.ErrNotAllowed) {
		t.Errorf("a member: %v", err)
	}
	d.full = true
	if a, err := give(press(2, orchestrator.RoleUser), data); err != nil || a.Instead != nil || a.Text == "" {
		t.Errorf("with a full queue: %+v, %v", a, err)
	}
	d.full, d.err = false, orchestrator.ErrShutdown
	if _, err := give(press(3, orchestrator.RoleUser), data); !errors.Is(err, orchestrator.ErrShutdown) {
		t.Errorf("while ductor ends: %v", err)
	}
	d.err, d.agent = nil, "codex"
	a, err := give(press(4, orchestrator.RoleUser), data)
	if err != nil || a.Instead == nil || a.Instead.Text != "➡️ Give to Codex" ||
		!strings.Contains(a.Text, "Codex now") {
		t.Errorf("after another agent was chosen: %+v, %v", a, err)
	}
	if len(d.prompts) > 0 {
		t.Fatalf("submitted %+v", d.prompts)
	}
	data = strings.TrimPrefix(a.Instead.Data, Action+":")
	if a, err = give(press(5, orchestrator.RoleUser), data); err != nil || a.Text != "✓ Given to Codex" {
		t.Errorf("the press is answered %+v, %v", a, err)
	}
	if a, err = give(press(6, orchestrator.RoleOwner), data); err != nil || !strings.Contains(a.Text, "already") {
		t.Errorf("a second press: %+v, %v", a, err)
	}
	want := []orchestrator.Prompt{{Conversation: here, Person: 3, Message: 40, Updates: []int64{5}, Quotes: "advice",
		Text: "Here is the advice of Codex. Check it, then do what's right.\n\nThe question was:\nWhich?\n\n" +
			"The advice:\nThat one."}}
	if !reflect.DeepEqual(d.prompts, want) || d.session != "s" {
		t.Errorf("submitted %+v in %s", d.prompts, d.session)
	}
	// Ductor may die before it knows that the press is handled. The store knows the update of the turn.
	if a, err = give(press(5, orchestrator.RoleUser), data); err != nil || len(d.prompts) != 2 ||
		!slices.Equal(d.prompts[1].Updates, []int64{5}) {
		t.Errorf("the same press again: %+v, %v", a, err)
	}
}

// Ask on sends a message. A reply to it goes to the model of the answer.
func TestAskOn(t *testing.T) {
	d := &desk{agent: "claude", session: "s"}
	s := New(Options{Consults: d, Desk: d, Entries: d, Journal: journal{bottest.NewJournal()}})
	if _, err := s.Press(t.Context(), press(1, orchestrator.RoleMember), 40, "o:advice"); !errors.Is(err,
		orchestrator.ErrNotAllowed) {
		t.Errorf("a member: %v", err)
	}
	a, err := s.Press(t.Context(), press(2, orchestrator.RoleUser), 40, "o:advice")
	if err != nil || len(a.Messages) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	if id, _, is := adviceOf(a.Messages[0].Key); !is || id != "advice" {
		t.Errorf("the message is %q", a.Messages[0].Key)
	}
}

func TestKeysOfAnswers(t *testing.T) {
	if id, session, is := adviceOf(adviceKey("e1", "q", 3)); !is || id != "e1" || session != "" {
		t.Errorf("%s, %s, %v", id, session, is)
	}
	if id, session, is := adviceOf("answer/codex/c1/q/0"); !is || id != "" || session != "c1" {
		t.Errorf("an older key: %s, %s, %v", id, session, is)
	}
	for _, key := range []string{"", "advice/e1/q", "answer/codex/c1/q", "card/a/b/c/d", "question/7/0/q"} {
		if _, _, is := adviceOf(key); is {
			t.Errorf("%q is the key of an answer", key)
		}
	}
}

func TestModelsBeforeAQuestion(t *testing.T) {
	for args, want := range map[string]string{
		"codex why?": "[{codex }] why?", " @codex\nwhy, then?": "[{codex }] why, then?", "codex": "[{codex }] ",
		"":                          "[] ",
		"codex,gemini why?":         "[{codex } {gemini }] why?",
		"codex, @gemini ,opus why?": "[{codex } {gemini @gemini ,opus why?} {opus }] why?",
		"codex, why so?":            "[{codex } {why why so?}] so?",
		"codex,":                    "[{codex }] ",
	} {
		names, rest := splitModels(args)
		if got := sprint(names) + " " + rest; got != want {
			t.Errorf("%q is %q, want %q", args, got, want)
		}
	}
}

func sprint(names []namedModel) string {
	var all []string
	for _, n := range names {
		all = append(all, "{"+n.name+" "+n.question+"}")
	}
	return "[" + strings.Join(all, " ") + "]"
}
