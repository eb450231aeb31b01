package transcript

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/bot/bottest"
	"ductor/orchestrator"
)

// desk records prompts.
type desk struct {
	prompts []orchestrator.Prompt
	wants   []orchestrator.Wants
	err     error
	full    bool
}

func (d *desk) submit(_ context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error) {
	if d.err == nil && !d.full {
		d.prompts, d.wants = append(d.prompts, p), append(d.wants, w)
	}
	return orchestrator.Receipt{Full: d.full}, d.err
}

var here = orchestrator.ConversationID{Chat: -5}

func press(person orchestrator.PersonID, update int64, role orchestrator.UserRole) orchestrator.Press {
	return orchestrator.Press{Conversation: here, Person: person, Role: role, Updates: []int64{update}}
}

func ask(t *testing.T, s *Screen) {
	t.Helper()
	p := orchestrator.Prompt{Conversation: here, Person: 1, Message: 9, Text: "[From Ann]\nhello", Rights: orchestrator.Rights{Of: orchestrator.RightsOfMember}}
	m, err := s.Ask(t.Context(), p, orchestrator.Wants{}, "hello")
	if err != nil || !strings.HasPrefix(m.Key, "voice/-5/0/9") {
		t.Fatalf("%+v, %v", m, err)
	}
}

// However often its buttons are pressed and by whom, a transcript becomes one prompt, of its sender.
func TestPresses(t *testing.T) {
	d := &desk{}
	s := New(Options{Journal: bottest.NewJournal(), Submit: d.submit})
	ask(t, s)
	for _, data := range []string{"", "s", "sx", "s8", "d-1", "x9"} {
		if a, err := s.Press(t.Context(), press(1, 1, ""), data); err != nil || a.Edit.Text != "" || !strings.Contains(a.Text, "no longer") {
			t.Errorf("%q: %+v %v", data, a, err)
		}
	}
	elsewhere := press(1, 1, "")
	elsewhere.Conversation.Chat = 7
	if a, err := s.Press(t.Context(), elsewhere, "s9"); err != nil || !strings.Contains(a.Text, "no longer") {
		t.Errorf("from another chat: %q, %v", a.Text, err)
	}
	if _, err := s.Press(t.Context(), press(2, 1, orchestrator.RoleMember), "s9"); !errors.Is(err, orchestrator.ErrNotAllowed) {
		t.Errorf("another member: %v", err)
	}
	d.full = true
	if a, err := s.Press(t.Context(), press(1, 2, ""), "s9"); err != nil || a.Text == "" || a.Edit.Text != "" {
		t.Errorf("with a full queue: %+v, %v", a, err)
	}
	d.full, d.err = false, orchestrator.ErrShutdown
	if _, err := s.Press(t.Context(), press(1, 3, ""), "s9"); !errors.Is(err, orchestrator.ErrShutdown) {
		t.Errorf("at the end of ductor: %v", err)
	}
	d.err = nil
	for _, update := range []int64{4, 4, 5} {
		if _, err := s.Press(t.Context(), press(1, update, orchestrator.RoleMember), "s9"); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Press(t.Context(), press(1, 6, ""), "d9"); err != nil {
		t.Error(err)
	}
	// Ductor may have died of the same update, which is handled again. The store knows its turn.
	if len(d.prompts) != 2 || d.prompts[0].Text != "[From Ann]\nhello" || d.prompts[0].Person != 1 || d.prompts[0].Rights.Of != orchestrator.RightsOfMember || d.prompts[1].Updates[0] != 4 {
		t.Errorf("submitted %+v", d.prompts)
	}
}

// The agent gets all of a confirmed message: its files, the message that it belongs to, and the model it names. If it
// consists of several messages, the user confirms the text of all.
func TestAConfirmedMessageIsComplete(t *testing.T) {
	files := []orchestrator.Attachment{{Path: "/uploads/a.png", Name: "a.png", MIME: "image/png", Image: true}}
	for text, shown := range map[string]string{
		"[From Ann]\nhello": "🎙 hello\n", "hello\nand this": "🎙 hello\nand this\n",
		"first\nhello there": "🎙 first\nhello there\n",
	} {
		d := &desk{}
		s := New(Options{Journal: bottest.NewJournal(), Submit: d.submit})
		p := orchestrator.Prompt{Conversation: here, Person: 1, Message: 9, Text: text, Attachments: files, PartOf: 7}
		m, err := s.Ask(t.Context(), p, orchestrator.Wants{Agent: "codex", Model: "m"}, "hello")
		if err != nil || !strings.Contains(string(m.Content), strings.ReplaceAll(shown, "\n", `\n`)) {
			t.Errorf("%q is shown as %s, %v", text, m.Content, err)
		}
		if _, err := s.Press(t.Context(), press(1, 2, ""), "s9"); err != nil || len(d.prompts) != 1 {
			t.Fatalf("%d prompts, %v", len(d.prompts), err)
		}
		got := d.prompts[0]
		if got.Text != text || !slices.Equal(got.Attachments, files) || got.PartOf != 7 || d.wants[0].Model != "m" {
			t.Errorf("submitted %+v, %+v", got, d.wants)
		}
	}
}

// A prompt arrives when the user presses the button. Its turn took no time before.
func TestAPromptArrivesWithThePress(t *testing.T) {
	d := &desk{}
	s := New(Options{Journal: bottest.NewJournal(), Submit: d.submit})
	sent := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := orchestrator.Prompt{Conversation: here, Person: 1, Message: 9, Text: "hello", Arrived: sent}
	_, spoken := s.Ask(t.Context(), p, orchestrator.Wants{}, "hello")
	_, answered := s.Answered(t.Context(), p)
	if err := errors.Join(spoken, answered); err != nil {
		t.Fatal(err)
	}
	pressed := press(1, 2, "")
	pressed.Arrived = sent.Add(time.Minute)
	for i, data := range []string{"s9", "p9"} {
		if _, err := s.Press(t.Context(), pressed, data); err != nil || len(d.prompts) != i+1 {
			t.Fatalf("%s: %d prompts, %v", data, len(d.prompts), err)
		}
		if got := d.prompts[i].Arrived; !got.Equal(pressed.Arrived) {
			t.Errorf("%s: the prompt arrived at %v", data, got)
		}
	}
}

func TestCorrections(t *testing.T) {
	d := &desk{}
	s := New(Options{Journal: bottest.NewJournal(), Submit: d.submit})
	ask(t, s)
	if _, _, ok, err := s.Edited(t.Context(), here, 2, 9, "theirs"); ok || err != nil {
		t.Errorf("another user corrects it: %t, %v", ok, err)
	}
	if _, _, ok, err := s.Edited(t.Context(), here, 1, 8, "other"); ok || err != nil {
		t.Errorf("a message that was not spoken: %t, %v", ok, err)
	}
	if _, page, ok, err := s.Edited(t.Context(), here, 1, 9, "goodbye"); !ok || err != nil || !strings.Contains(page.Text, "goodbye") || len(page.Keyboard) != 2 {
		t.Errorf("%+v, %t, %v", page, ok, err)
	}
	if a, err := s.Press(t.Context(), press(1, 4, ""), "s9"); err != nil || a.Edit.Keyboard != nil || a.Edit.Text != "🎙 goodbye" {
		t.Errorf("%+v, %v", a, err)
	}
	if len(d.prompts) != 1 || d.prompts[0].Text != "[From Ann]\ngoodbye" {
		t.Errorf("submitted %+v", d.prompts)
	}
	if _, _, ok, err := s.Edited(t.Context(), here, 1, 9, "too late"); ok || err != nil {
		t.Errorf("it is corrected after it was sent: %t, %v", ok, err)
	}
}
