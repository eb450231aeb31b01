package cron

import (
	"context"
	"errors"
	"strconv"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// awaited names the field for whose new value a message of the bot asks. It is stored in the database.
type awaited struct {
	Key   string `json:"key,omitempty"` // same as pressed.key; empty if the message asks for nothing
	Field string `json:"field,omitempty"`
}

func awaitedName(in orchestrator.ConversationID, message int) string {
	return "cron@" + string(in.Key()) + "/" + strconv.Itoa(message)
}

// awaitReply records that a reply to the message with the button, or the user's next message, is the new value of a
// field.
func (s *Screen) awaitReply(ctx context.Context, p press, f form, field field) error {
	err := message.SaveValue(ctx, s.o.Journal, awaitedName(p.by.Conversation, p.message), awaited{
		Key: f.key, Field: field.code,
	})
	if err != nil {
		return err
	}
	return message.Expect(p.by, s.o.Now()).Save(ctx, s.o.Journal, p.by.Conversation, p.message, "")
}

// stopAwaiting records that a message asks for nothing any more. The agent then gets replies to it as prompts.
func (s *Screen) stopAwaiting(ctx context.Context, in orchestrator.ConversationID, messageID int) error {
	a, found, err := message.LoadValue[awaited](ctx, s.o.Journal, awaitedName(in, messageID))
	if err != nil || !found || a.Key == "" {
		return err
	}
	return message.SaveValue(ctx, s.o.Journal, awaitedName(in, messageID), awaited{})
}

// Reply is a user's answer to a message of the bot: a reply, or the user's next message after the bot has asked for a
// text.
type Reply struct {
	By   orchestrator.Press
	To   int // ID of the bot's message
	Text string
}

// ReplyState is the result of Screen.Reply.
type ReplyState int

// The results of Screen.Reply.
const (
	Prompt   ReplyState = iota // the reply was not expected; the agent should get it as a prompt
	Answered                   // the reply was handled, and the message still expects another reply
	Done                       // the reply was handled, and the caller should remove the buttons of the bot's message
)

// Reply handles a reply if the bot's message asks for one, and if the user may change jobs. First, it calls answer,
// which must mark the update as handled. The second argument of answer reports whether a field has the new value. Then it records that the message no longer asks. This order matters if ductor
// crashes in between: with the other order, the next process would send the reply to the agent as a prompt.
func (s *Screen) Reply(ctx context.Context, r Reply, answer func(p tgapi.Page, changed bool)) ReplyState {
	p := s.o.Lang.Of(r.By.Conversation.Chat)
	if s.o.Jobs == nil || !r.By.May(orchestrator.MakeSchedules) {
		return Prompt
	}
	in := r.By.Conversation
	a, found, err := message.LoadValue[awaited](ctx, s.o.Journal, awaitedName(in, r.To))
	if err != nil {
		s.o.Log.Error("find the page of a reply", "updates", r.By.Updates, "err", err)
		answer(tgapi.Page{Text: p.Text("common.not-looked-up")}, false)
		return Answered
	}
	field, known := fieldOf(p, a.Field)
	if !found || !known || field.read == nil || a.Key == "" {
		return Prompt
	}
	page, err := s.changeByReply(ctx, r, a, field)
	bad := (*orchestrator.BadJob)(nil)
	switch {
	case errors.As(err, &bad):
		answer(tgapi.Page{Text: render.Cut(bad.Why, 1500) + "\n\n" + p.Text("cron.reply-again")}, false)
		return Answered
	case errors.Is(err, orchestrator.ErrNoJob), errors.Is(err, orchestrator.ErrRepeated),
		errors.Is(err, orchestrator.ErrJobConfigured):
		page = tgapi.Page{Text: p.Text("cron.gone")}
	case err != nil:
		s.o.Log.Error("change a job", "updates", r.By.Updates, "err", err)
		page = tgapi.Page{Text: p.Text("cron.not-changed")}
	}
	answer(page, err == nil)
	if err := s.stopAwaiting(ctx, in, r.To); err != nil {
		s.o.Log.Warn("forget an awaited reply", "updates", r.By.Updates, "err", err)
	}
	return Done
}

// changeByReply sets a field to the text of a reply, and returns the page of the changed job.
func (s *Screen) changeByReply(ctx context.Context, r Reply, a awaited, field field) (tgapi.Page, error) {
	in := r.By.Conversation
	f := form{key: a.Key, by: r.By, job: orchestrator.Job{Conversation: in}}
	_, isDraft := f.nonce()
	if !isDraft {
		st, err := s.find(ctx, in, a.Key)
		if err != nil {
			return tgapi.Page{}, err
		}
		f.job = st.Job
	}
	f, err := s.change(ctx, f, func(j *orchestrator.Job) error { return field.read(s.o.Jobs, j, r.Text) })
	if err != nil {
		return tgapi.Page{}, err
	}
	if isDraft {
		return s.draftPage(f.key, f.job)
	}
	st, err := s.o.Jobs.Job(ctx, f.job.ID, in)
	return s.jobPage(st), err
}
