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
	Session orchestrator.SessionID `json:"session,omitempty"` // empty if the page no longer asks for a title
	Last    replaced               `json:"last,omitzero"`     // the last change
}

// replaced describes the change of a title.
type replaced struct {
	Update  int64                  `json:"update"` // ID of the update with the new title
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

// StopAsking records that a message no longer asks for a title. Replies to this message are then prompts.
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
	Answer string     // text for the user; empty after an error, if the user can send the title again
	Page   tgapi.Page // new page of the message that asked for the title; may be empty

	replaced replaced
}

// Settle records that a message no longer asks for a title, because Replied has handled a title from the user. It also
// stores the old title for Undo.
func (s *Screen) Settle(ctx context.Context, in orchestrator.ConversationID, messageID int, r Renamed) error {
	return message.SaveValue(ctx, s.o.Journal, renamingName(in, messageID), renaming{Last: r.replaced})
}

// Undo restores the title that a session had before a user's message replaced it. If the title has changed again since
// then, Undo leaves it unchanged. question is the ID of the bot's message that asked for the title. update is the ID of
// the update with the user's message. Undo returns a sentence with the current title, or "" if the user's message
// replaced no title.
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

// Replied renames a session if a message of the bot asks for the session's title. replyTo is the ID of the bot's
// message. Replied returns ok = false if this message asks for no title, or if the user may not rename sessions.
//
// If ok is true, the caller must first mark the user's message as handled, and then call Settle. If ductor crashes
// before Settle is called, the next process may rename the session again, which does no harm. If Settle were called
// first, the next process could send the title to the agent as a prompt.
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
