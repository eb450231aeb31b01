package sessions

import (
	"context"
	"errors"
	"strconv"

	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// renaming is stored in the database for each page that asks for the new title of a session.
type renaming struct {
	Session orchestrator.SessionID `json:"session,omitempty"` // session to rename; empty if the page no longer asks
	Last    replaced               `json:"last,omitzero"`     // the last change
}

// replaced describes the change of a title.
type replaced struct {
	Update  int64                  `json:"update"` // update of the message with the new title
	Session orchestrator.SessionID `json:"session"`
	Before  string                 `json:"before"`
	After   string                 `json:"after"`
}

func renamingName(in orchestrator.ConversationID, message int) string {
	return "rename@" + string(in.Key()) + "/" + strconv.Itoa(message)
}

// askTitle returns a page that asks for the new title of a session. A reply to the message with the page, or the user's
// next message, is the title.
func (s *Screen) askTitle(ctx context.Context, by orchestrator.Press, messageID int,
	id orchestrator.SessionID) (tgapi.Page, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	now, err := s.o.Sessions.Session(ctx, by.Conversation, id)
	if err != nil {
		return tgapi.Page{}, err
	}
	page := tgapi.Page{
		Text: p.Text("sessions.ask-title", s.title(p, now)), Keyboard: tgapi.Keyboard{{OpenButton(p, id)}},
	}
	err = message.SaveValue(ctx, s.o.Journal, renamingName(by.Conversation, messageID), renaming{Session: id})
	if err == nil {
		err = message.Expect(by, s.o.Now()).Save(ctx, s.o.Journal, by.Conversation, messageID, "")
	}
	return page, err
}

// StopAsking records that a message asks for no title any more. The agent then gets replies to it as prompts.
func (s *Screen) StopAsking(ctx context.Context, in orchestrator.ConversationID, messageID int) error {
	asked, found, err := message.LoadValue[renaming](ctx, s.o.Journal, renamingName(in, messageID))
	if err != nil || !found || asked.Session == "" {
		return err
	}
	return message.SaveValue(ctx, s.o.Journal, renamingName(in, messageID), renaming{})
}

// Renamed is the result of Screen.Replied.
type Renamed struct {
	Done   bool       // the session has the new title
	Answer string     // text for the user; empty after an error that a second reply may not meet
	Page   tgapi.Page // new page of the message that asked; may be empty

	replaced replaced
}

// Settle records that a message asks for no title any more, because the user has sent one. See Undo.
func (s *Screen) Settle(ctx context.Context, in orchestrator.ConversationID, messageID int, r Renamed) error {
	return message.SaveValue(ctx, s.o.Journal, renamingName(in, messageID), renaming{Last: r.replaced})
}

// Undo restores the title that a message of the user replaced, unless the session has got another title since. question
// is the ID of the message that asked for the title, and update is the update of the user's message. Undo returns a
// sentence with the current title, or "" if the message replaced no title.
func (s *Screen) Undo(ctx context.Context, by orchestrator.Press, question int, update int64) (string, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	asked, _, err := message.LoadValue[renaming](ctx, s.o.Journal, renamingName(by.Conversation, question))
	last := asked.Last
	if err != nil || last.Session == "" || last.Update != update {
		return "", err
	}
	now, err := s.o.Sessions.Session(ctx, by.Conversation, last.Session)
	if err == nil && now.Title == last.After && last.Before != "" && last.Before != last.After {
		now, err = s.o.Sessions.Rename(ctx, by, last.Session, last.Before)
	}
	switch {
	case errors.Is(err, orchestrator.ErrNoSession), errors.Is(err, orchestrator.ErrElsewhere):
		return p.Text("sessions.gone"), nil
	case errors.Is(err, orchestrator.ErrNotAllowed):
		return "", nil
	case err != nil:
		return "", err
	case now.Title == last.Before && last.Before != last.After:
		return p.Text("sessions.restored", now.Title), nil
	}
	return p.Text("sessions.renamed", s.title(p, now)), nil
}

// Replied renames a session if the message with the ID replyTo asks for the session's title. It returns false if the
// message asks for no title, or if the user may not rename sessions. The caller must then mark the reply as handled and call Settle, in this order. If ductor crashes
// before or in between, the next process can safely rename the session again. With the other order, it could send the
// title to the agent as a prompt.
func (s *Screen) Replied(ctx context.Context, by orchestrator.Press, replyTo int,
	title string) (r Renamed, ok bool, err error) {
	p, in := s.o.Lang.Of(by.Conversation.Chat), by.Conversation
	if !by.May(orchestrator.ChangeSessions) {
		return r, false, nil
	}
	asked, found, err := message.LoadValue[renaming](ctx, s.o.Journal, renamingName(in, replyTo))
	if err != nil || !found || asked.Session == "" {
		return r, false, err
	}
	before, err := s.o.Sessions.Session(ctx, in, asked.Session)
	changed := before
	if err == nil {
		changed, err = s.o.Sessions.Rename(ctx, by, asked.Session, title)
	}
	switch {
	case errors.Is(err, orchestrator.ErrNotAllowed):
		return Renamed{Answer: p.Text("common.not-for-members")}, true, nil
	case errors.Is(err, orchestrator.ErrNoSession), errors.Is(err, orchestrator.ErrElsewhere):
		return Renamed{Answer: p.Text("sessions.gone")}, true, nil
	case err != nil:
		return r, true, err
	}
	r = Renamed{Done: true, Answer: p.Text("sessions.renamed", changed.Title), replaced: replaced{
		Update: message.UpdateOf(by), Session: changed.ID, Before: before.Title, After: changed.Title,
	}}
	r.Page, err = s.page(ctx, p, changed)
	return r, true, err
}
