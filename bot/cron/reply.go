package cron

import (
	"context"
	"errors"
	"reflect"
	"strconv"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// awaited describes a message of the bot that asks a user for the new value of a field. The database stores it.
type awaited struct {
	Key   string `json:"key,omitempty"` // see pressed.key; empty if the message no longer asks for a value
	Field string `json:"field,omitempty"`

	Last *replaced `json:"last,omitempty"` // the last change; nil if there is none
}

// replaced describes the change of a field. Before and After contain only this field.
type replaced struct {
	Update int64            `json:"update"` // ID of the update with the user's reply
	Key    string           `json:"key"`
	Field  string           `json:"field"`
	Before orchestrator.Job `json:"before"`
	After  orchestrator.Job `json:"after"`
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

// stopAwaiting records that a message no longer asks for a value. Replies to this message are then prompts.
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

// Reply handles a reply if the bot's message asks for the value of a field, and if the user may change jobs. Reply
// changes the job and calls answer, which must mark the update as handled. The parameter changed is true if the field
// has the new value.
//
// After that, Reply records that the message no longer asks for a value. This order matters after a crash in between:
// the next process handles the update again, and must not send the reply to the agent as a prompt.
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
	page, last, err := s.changeByReply(ctx, r, a, field)
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
	if err := message.SaveValue(ctx, s.o.Journal, awaitedName(in, r.To), awaited{Last: last}); err != nil {
		s.o.Log.Warn("forget an awaited reply", "updates", r.By.Updates, "err", err)
	}
	return Done
}

// changeByReply sets a field to the text of a reply. It returns the page of the changed job, and the change.
func (s *Screen) changeByReply(ctx context.Context, r Reply, a awaited, field field) (tgapi.Page, *replaced, error) {
	f, err := s.formOf(ctx, r.By, a.Key)
	if err != nil {
		return tgapi.Page{}, nil, err
	}
	last := &replaced{Update: message.UpdateOf(r.By), Key: a.Key, Field: a.Field}
	f, err = s.change(ctx, f, func(j *orchestrator.Job) error {
		field.part(*j, &last.Before)
		return field.read(s.o.Jobs, j, r.Text)
	})
	if err != nil {
		return tgapi.Page{}, nil, err
	}
	field.part(f.job, &last.After)
	if _, isDraft := f.nonce(); isDraft {
		page, err := s.draftPage(f.key, f.job)
		return page, last, err
	}
	st, err := s.o.Jobs.Job(ctx, f.job.ID, r.By.Conversation)
	return s.jobPage(st), last, err
}

// formOf returns the form for a saved job or a draft. It does not load the job of a draft, because Screen.change does.
func (s *Screen) formOf(ctx context.Context, by orchestrator.Press, key string) (form, error) {
	f := form{key: key, by: by, job: orchestrator.Job{Conversation: by.Conversation}}
	if _, isDraft := f.nonce(); isDraft {
		return f, nil
	}
	st, err := s.find(ctx, by.Conversation, key)
	f.job = st.Job
	return f, err
}

// Undo restores the value that a field had before a user's message replaced it. If the field has changed again since
// then, Undo leaves it unchanged. question is the ID of the bot's message that asked for the value. update is the ID of
// the update with the user's message. Undo returns a sentence with the field's current value, or "" if the user's
// message replaced no value.
func (s *Screen) Undo(ctx context.Context, by orchestrator.Press, question int, update int64) (string, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	a, _, err := message.LoadValue[awaited](ctx, s.o.Journal, awaitedName(by.Conversation, question))
	if err != nil || a.Last == nil || a.Last.Update != update {
		return "", err
	}
	if s.o.Jobs == nil || !by.May(orchestrator.MakeSchedules) {
		return "", nil
	}
	key := a.Last.Key
	if nonce, isDraft := (pressed{key: key}).draft(); isDraft {
		if _, err := s.loadDraft(ctx, by.Conversation, nonce); errors.Is(err, orchestrator.ErrRepeated) {
			key = jobKey(draftJob(nonce)) // after the reply, a user added the draft as a job
		}
	}
	field, known := fieldOf(p, a.Last.Field)
	f, err := s.formOf(ctx, by, key)
	restored := false
	if err == nil {
		f, err = s.change(ctx, f, func(j *orchestrator.Job) error {
			restored = known && a.Last.restore(field, j)
			return nil
		})
	}
	bad := (*orchestrator.BadJob)(nil)
	switch {
	case errors.As(err, &bad), !known:
		return "", nil
	case errors.Is(err, orchestrator.ErrNoJob), errors.Is(err, orchestrator.ErrJobConfigured):
		return p.Text("cron.gone"), nil
	case err != nil:
		return "", err
	case restored:
		return p.Text("cron.restored", render.Cut(f.job.Name, nameShown), field.label, field.value(f.job)), nil
	}
	return p.Text("cron.stays", render.Cut(f.job.Name, nameShown), field.label, field.value(f.job)), nil
}

// restore sets the field to its value before the change. It returns false if the change had no effect, or if the field
// has been changed again since then.
func (r replaced) restore(field field, j *orchestrator.Job) bool {
	var now orchestrator.Job
	field.part(*j, &now)
	if reflect.DeepEqual(r.Before, r.After) || !reflect.DeepEqual(now, r.After) && !reflect.DeepEqual(now, r.Before) {
		return false
	}
	field.part(r.Before, j)
	return true
}
