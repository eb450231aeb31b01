// Package transcript asks users whether the transcript of a voice message is correct, before an agent gets it as a
// prompt. The package also creates a notice if a user's message became the answer to an agent's question, the reason of
// a denial, or a text for which the bot had asked. The notice has a button that also sends the message as a prompt.
package transcript

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the first part of the data of all buttons of this package.
const Action = "V"

// Operations of the buttons. In the data of a button, the ID of the user's message follows the operation.
const (
	opSend    = "s"
	opDiscard = "d"
	opPrompt  = "p" // sends a text as a prompt after the bot took it for an answer
)

// Journal stores texts, and finds the messages that show them. See orchestrator.Journal.
type Journal interface {
	orchestrator.CardStore
	FindMessage(ctx context.Context, key string) (orchestrator.Message, error)
	MessageAt(ctx context.Context, in orchestrator.ConversationID, id int) (orchestrator.Message, error)
}

// Options configures a Screen. All fields are required.
type Options struct {
	Journal Journal
	Submit  func(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
	Lang    *lang.Choices
	// Undo restores the value that a setting had before a user's text replaced it. question is the ID of the bot's
	// message that asked for the text. update is the ID of the update with the text. Undo returns a sentence with the
	// setting's current value, or "" if the text replaced no value.
	Undo func(ctx context.Context, by orchestrator.Press, question int, update int64) string
}

// Screen asks users about transcripts and answers. The texts are stored in the database until the user decides, so the
// buttons also work after a restart. Only the first press of a button has an effect. Methods may be called concurrently
// only for different conversations.
type Screen struct{ Options }

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o} }

// waiting describes a transcript that the user has neither sent nor discarded. It is stored in the database.
type waiting struct {
	Person orchestrator.PersonID `json:"person"`
	Of     orchestrator.RightsOf `json:"of"`
	Before string                `json:"before"` // part of the prompt before the transcript
	Text   string                `json:"text"`
	Taken  int64                 `json:"taken"` // ID of the update with the user's decision; 0 until the user decides

	Expected *expected `json:"asked,omitempty"` // nil if the bot had not asked the user for Text

	Attachments []orchestrator.Attachment `json:"attachments,omitempty"`
	PartOf      int                       `json:"part_of,omitempty"`
	Wants       orchestrator.Wants        `json:"wants"`
}

// expected describes a text for which the bot had asked, such as the title of a session.
type expected struct {
	Arrived  time.Time `json:"arrived"`
	Update   int64     `json:"update"`
	Question int       `json:"question,omitempty"` // ID of the bot's message; 0 if the bot could not use the text
}

// Prefixes of database keys, for transcripts and for answers to questions.
const (
	keyPrefix    = "voice/"
	answerPrefix = "answer/"
)

func keyOf(in orchestrator.ConversationID, spoken int) string {
	return fmt.Sprint(keyPrefix, in.Key(), "/", spoken)
}

// Answered stores a text that was used as the answer to a question or as the reason of a denial. It returns the notice
// about this, with a button that sends the text as a prompt.
func (s *Screen) Answered(ctx context.Context, p orchestrator.Prompt) (orchestrator.Message, error) {
	return s.offer(ctx, p, nil, s.Lang.Of(p.Conversation.Chat).Text("transcript.was-answer"))
}

// Expected stores a text that the bot used because it had asked for it, for example as the title of a session. question
// is the ID of the bot's message that asked. Like Answered, Expected returns a notice with a button that sends the text
// as a prompt.
func (s *Screen) Expected(ctx context.Context, p orchestrator.Prompt, question int) (orchestrator.Message, error) {
	return s.offer(ctx, p, expectedOf(p, question), s.Lang.Of(p.Conversation.Chat).Text("transcript.was-expected"))
}

// Refused stores a text for which the bot had asked, but which it could not use. It returns a notice with the reason,
// and with a button that sends the text as a prompt.
func (s *Screen) Refused(ctx context.Context, p orchestrator.Prompt, why string) (orchestrator.Message, error) {
	return s.offer(ctx, p, expectedOf(p, 0), why)
}

func expectedOf(p orchestrator.Prompt, question int) *expected {
	update := message.UpdateOf(orchestrator.Press{Updates: p.Updates})
	return &expected{Arrived: p.Arrived, Update: update, Question: question}
}

func (s *Screen) offer(ctx context.Context, p orchestrator.Prompt, text *expected,
	notice string) (orchestrator.Message, error) {
	w := waiting{Person: p.Person, Of: p.Rights.Of, Text: p.Text, Expected: text}
	key := fmt.Sprint(answerPrefix, p.Conversation.Key(), "/", p.Message)
	if err := message.SaveValue(ctx, s.Journal, key, w); err != nil {
		return orchestrator.Message{}, err
	}
	say := s.Lang.Of(p.Conversation.Chat)
	button := tgapi.NewButton(say.Text("transcript.no-prompt"), Action, opPrompt+strconv.Itoa(p.Message))
	m := message.Compose(p.Conversation, message.Content{
		Text: render.Plain(notice), Keyboard: tgapi.Keyboard{{button}}, ReplyTo: p.Message,
		Silent: text == nil || text.Question != 0,
	})
	m.Key = key
	return m, nil
}

// Ask stores the prompt of a voice message. It returns a message with buttons that send or discard the prompt. Usually,
// the message shows only the transcript. If the prompt consists of several messages, other text may follow the
// transcript. The message then shows the whole text of the prompt.
func (s *Screen) Ask(ctx context.Context, p orchestrator.Prompt, wants orchestrator.Wants,
	transcript string) (orchestrator.Message, error) {
	before, last := strings.CutSuffix(p.Text, transcript)
	if !last {
		before, transcript = "", p.Text
	}
	w := waiting{Person: p.Person, Of: p.Rights.Of, Before: before, Text: transcript,
		Attachments: p.Attachments, PartOf: p.PartOf, Wants: wants}
	if err := message.SaveValue(ctx, s.Journal, keyOf(p.Conversation, p.Message), w); err != nil {
		return orchestrator.Message{}, err
	}
	page := s.page(s.Lang.Of(p.Conversation.Chat), w, p.Message)
	m := message.Compose(p.Conversation, message.Content{
		Text: render.Plain(page.Text), Keyboard: page.Keyboard, ReplyTo: p.Message,
	})
	m.Key = keyOf(p.Conversation, p.Message)
	return m, nil
}

// maxShown is the maximum length of the part of a transcript that is shown, in UTF-16 code units.
const maxShown = 3000

func (s *Screen) page(p lang.Printer, w waiting, spoken int) tgapi.Page {
	page := tgapi.Page{Text: "🎙 " + render.ShortenPlain(w.Text, maxShown)}
	if w.Taken != 0 {
		return page
	}
	page.Text += "\n\n" + p.Text("transcript.is-it-right")
	for _, b := range []struct {
		op  string
		key lang.Key
	}{{opSend, "transcript.send"}, {opDiscard, "transcript.discard"}} {
		page.Keyboard = append(page.Keyboard, []tgapi.Button{
			tgapi.NewButton(p.Text(b.key), Action, b.op+strconv.Itoa(spoken)),
		})
	}
	return page
}

// Press handles a button of this package. data is the button's data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, data string) (a tgapi.Answer, err error) {
	p := s.Lang.Of(by.Conversation.Chat)
	spoken, err := strconv.Atoi(strings.TrimLeft(data, opSend+opDiscard+opPrompt))
	if err != nil || len(by.Updates) == 0 {
		return tgapi.Stale(p), nil
	}
	key, isAnswer := keyOf(by.Conversation, spoken), strings.HasPrefix(data, opPrompt)
	if isAnswer {
		key = fmt.Sprint(answerPrefix, by.Conversation.Key(), "/", spoken)
	}
	w, there, err := message.LoadValue[waiting](ctx, s.Journal, key)
	switch {
	case err != nil:
		return a, err
	case !there || w.Taken != 0 && w.Taken != by.Updates[0]:
		return tgapi.Stale(p), nil
	case by.Person != w.Person && !by.May(orchestrator.ActAsChat):
		return a, orchestrator.ErrNotAllowed
	}
	if w.Expected != nil { // the bot may still wait for another text, but must not use the user's next message for it
		sent := orchestrator.Press{Conversation: by.Conversation, Person: w.Person, Arrived: w.Expected.Arrived,
			Updates: []int64{w.Expected.Update}}
		if err := message.End(ctx, s.Journal, sent); err != nil {
			return a, err
		}
	}
	w.Taken = by.Updates[0]
	if err := message.SaveValue(ctx, s.Journal, key, w); err != nil {
		return a, err
	}
	if strings.HasPrefix(data, opDiscard) {
		return tgapi.Answer{
			Text: p.Text("transcript.discarded"), Edit: tgapi.Page{Text: p.Text("transcript.discarded")},
		}, nil
	}
	receipt, err := s.Submit(ctx, orchestrator.Prompt{
		Conversation: by.Conversation, Person: w.Person, Text: w.Before + w.Text, Message: spoken, Updates: by.Updates,
		Rights: orchestrator.Rights{Of: w.Of}, Arrived: by.Arrived, Attachments: w.Attachments, PartOf: w.PartOf,
	}, w.Wants)
	if err == nil && !receipt.Full && w.Expected != nil {
		return tgapi.Answer{Edit: tgapi.Page{Text: s.undo(ctx, by, *w.Expected)}}, nil
	}
	if err == nil && !receipt.Full && isAnswer {
		return tgapi.Answer{Edit: tgapi.Page{Text: p.Text("transcript.runs-as-prompt")}}, nil
	}
	if err == nil && !receipt.Full {
		return tgapi.Answer{Edit: s.page(p, w, spoken)}, nil
	}
	a.Text = p.Text("bot.queue-full")
	w.Taken = 0
	if saved := message.SaveValue(ctx, s.Journal, key, w); saved != nil && err == nil {
		err = saved
	}
	return a, err
}

// undo restores the value that an expected text replaced. It returns a text for the user about the prompt and the
// value.
func (s *Screen) undo(ctx context.Context, by orchestrator.Press, e expected) string {
	p := s.Lang.Of(by.Conversation.Chat)
	if e.Question == 0 {
		return p.Text("transcript.runs")
	}
	if restored := s.Undo(ctx, by, e.Question, e.Update); restored != "" {
		return p.Text("transcript.runs") + "\n" + restored
	}
	return p.Text("transcript.runs-too")
}

// Edited handles an edit of a voice message's caption: the new caption replaces the transcript, unless the user has
// already sent or discarded the prompt. Edited returns the ID and the new content of the message that shows the
// transcript. It returns false if it replaced no transcript.
func (s *Screen) Edited(ctx context.Context, in orchestrator.ConversationID, by orchestrator.PersonID, spoken int,
	text string) (shown int, page tgapi.Page, ok bool, err error) {
	key := keyOf(in, spoken)
	w, there, err := message.LoadValue[waiting](ctx, s.Journal, key)
	if err != nil || !there || w.Taken != 0 || w.Person != by || text == "" {
		return 0, page, false, err
	}
	w.Text = text
	if err := message.SaveValue(ctx, s.Journal, key, w); err != nil {
		return 0, page, false, err
	}
	m, err := s.Journal.FindMessage(ctx, key)
	return m.ID, s.page(s.Lang.Of(in.Chat), w, spoken), err == nil, err
}

// Replied handles a reply to the message that shows a transcript. The text of the reply replaces the transcript, as in
// Edited.
func (s *Screen) Replied(ctx context.Context, in orchestrator.ConversationID, by orchestrator.PersonID, to int,
	text string) (page tgapi.Page, ok bool, err error) {
	m, err := s.Journal.MessageAt(ctx, in, to)
	if err != nil {
		return page, false, fmt.Errorf("find a transcript: %w", err)
	}
	rest, is := strings.CutPrefix(m.Key, keyPrefix)
	spoken, bad := strconv.Atoi(rest[strings.LastIndexByte(rest, '/')+1:])
	if !is || bad != nil {
		return page, false, nil
	}
	_, page, ok, err = s.Edited(ctx, in, by, spoken, text)
	return page, ok, err
}
