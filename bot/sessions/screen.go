package sessions

import (
	"context"
	"errors"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Options configures a Screen. All fields except Files and SetAway are required.
type Options struct {
	Sessions orchestrator.Sessions
	Journal  orchestrator.CardStore // stores which messages ask for a title
	// Status returns the agent of the conversation, and the session that its next prompt continues.
	Status func(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Status, error)
	Now    func() time.Time
	Lang   *lang.Choices
	// Files returns a button that lists the restore points of a session's changed files. It is nil if ductor does not
	// record changes.
	Files func(p lang.Printer, id orchestrator.SessionID) tgapi.Button
	// SetAway handles "/terminal" with an argument. The argument defines when agents in the owner's terminals ask for
	// approvals in the chat: "on" means always, "off" means never, and "auto" means only while the screen is locked or
	// idle. SetAway returns ErrNotOwner if the user is not an owner of the bot, ErrBadChoice for other arguments, and
	// ErrNoHooks if no agent can ask in the chat. If SetAway is nil, agents in terminals never ask in the chat.
	SetAway func(by orchestrator.Press, choice string) error
}

// ErrNoHooks means that no agent in a terminal sends its requests for approval to ductor.
var ErrNoHooks = errors.New("no agent has ductor's hooks")

// Screen implements the command /sessions. Its buttons contain the IDs of sessions and turns, so they also work after a
// restart. It is safe for concurrent use.
type Screen struct{ o Options }

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o} }

// Command handles "/sessions". It lists the sessions of the conversation. With the argument "archived", it lists the
// archived sessions. Other arguments are words that the listed sessions must contain.
func (s *Screen) Command(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	l := listed{words: strings.TrimSpace(args)}
	if strings.EqualFold(l.words, "archived") {
		l = listed{archived: true}
	}
	return s.list(ctx, by.Conversation, l)
}

// Rename handles "/rename". It changes the title of the current session.
func (s *Screen) Rename(ctx context.Context, by orchestrator.Press, title string) (tgapi.Page, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	st, err := s.o.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	if st.Session.ID == "" {
		return tgapi.Page{Text: p.Text("sessions.no-session")}, nil
	}
	changed, err := s.o.Sessions.Rename(ctx, by, st.Session.ID, title)
	switch {
	case errors.Is(err, orchestrator.ErrBadChoice):
		return tgapi.Page{Text: p.Text("sessions.how-to-rename")}, nil
	case errors.Is(err, orchestrator.ErrNotAllowed):
		return tgapi.Page{Text: p.Text("common.not-for-members")}, nil
	}
	return tgapi.Page{Text: p.Text("sessions.renamed", changed.Title)}, err
}

// Press handles a button of this package. data is the button's data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, messageID int, data string) (tgapi.Answer, error) {
	say := s.o.Lang.Of(by.Conversation.Chat)
	p, ok := parseButton(data)
	if !ok {
		return tgapi.Stale(say), nil
	}
	if err := message.End(ctx, s.o.Journal, by); err != nil {
		return tgapi.Answer{}, err
	}
	a, err := s.act(ctx, by, messageID, p)
	switch {
	case errors.Is(err, orchestrator.ErrNoSession), errors.Is(err, orchestrator.ErrElsewhere),
		errors.Is(err, orchestrator.ErrNoTurn):
		page, err := s.list(ctx, by.Conversation, listed{})
		return tgapi.Answer{Text: say.Text("sessions.gone"), Edit: page}, err
	case errors.Is(err, orchestrator.ErrSessionInUse):
		return tgapi.Answer{Text: inUse(say, err)}, nil
	}
	return a, err
}

func (s *Screen) act(ctx context.Context, by orchestrator.Press, message int, p pressed) (a tgapi.Answer, err error) {
	say := s.o.Lang.Of(by.Conversation.Chat)
	in, id := by.Conversation, orchestrator.SessionID(p.key)
	if p.op.restricted() && !by.May(orchestrator.ChangeSessions) {
		return a, orchestrator.ErrNotAllowed
	}
	if p.op == opRename {
		a.Edit, err = s.askTitle(ctx, by, message, id)
		return a, err
	}
	if err := s.StopAsking(ctx, in, message); err != nil {
		return a, err
	}
	switch p.op {
	case opList:
		a.Edit, err = s.list(ctx, in, parseListed(p.arg))
		return a, err
	case opResume:
		now, err := s.o.Sessions.Continue(ctx, in, id)
		return s.continued(ctx, say, now, err)
	case opFork:
		now, err := s.o.Sessions.Fork(ctx, in, cli.TurnID(p.key))
		return s.resumed(ctx, say, now, say.Text("sessions.forked"), err)
	case opExport:
		return s.export(ctx, in, id)
	case opJSON:
		return tgapi.Answer{Text: say.Text("sessions.json-is-gone")}, nil
	case opElsewhere:
		page, _ := tgapi.ButtonNumber(p.key)
		a.Edit, err = s.listElsewhere(ctx, by, page, audience(p.arg))
		return a, err
	case opMoving:
		a.Edit, err = s.movePage(ctx, by, id)
		return a, err
	case opMove:
		now, err := s.o.Sessions.TakeOver(ctx, by, id)
		return s.continued(ctx, say, now, err)
	case opTerminal:
		a.Edit, err = s.listStored(ctx, in, audience(p.arg))
		return a, err
	case opStored, opReported:
		return s.resumeStored(ctx, by, p)
	case opTurns:
		page, _ := tgapi.ButtonNumber(p.arg)
		a.Edit, err = s.turns(ctx, in, id, page)
		return a, err
	case opDeleted:
		if err = s.o.Sessions.Delete(ctx, by, id); err == nil {
			a.Text = say.Text("sessions.deleted")
			a.Edit, err = s.list(ctx, in, listed{})
		}
		return a, err
	}
	return s.change(ctx, by, p.op, id)
}

// change handles buttons that change a session. The message then shows the page of the session again.
func (s *Screen) change(ctx context.Context, by orchestrator.Press, op op,
	id orchestrator.SessionID) (a tgapi.Answer, err error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	var now orchestrator.Session
	switch op {
	case opOpen:
		now, err = s.o.Sessions.Session(ctx, by.Conversation, id)
	case opPin:
		if now, err = s.o.Sessions.Pin(ctx, by, id); now.Pinned {
			a.Text = p.Text("sessions.pinned")
		} else {
			a.Text = p.Text("sessions.unpinned")
		}
	case opArchive:
		if now, err = s.o.Sessions.Archive(ctx, by, id); now.Archived {
			a.Text = p.Text("sessions.is-archived")
		} else {
			a.Text = p.Text("sessions.is-unarchived")
		}
	case opDelete:
		if now, err = s.o.Sessions.Deletable(ctx, by, id); err == nil {
			a.Edit = s.deletePage(p, now)
		}
		return a, err
	default:
		return tgapi.Stale(p), nil
	}
	if err != nil {
		return tgapi.Answer{}, err
	}
	a.Edit, err = s.page(ctx, p, now)
	return a, err
}

// resumed returns the page of a session after a button has made it the current session. The user also sees a short
// notice.
func (s *Screen) resumed(ctx context.Context, p lang.Printer, now orchestrator.Session, notice string,
	err error) (tgapi.Answer, error) {
	if err != nil {
		return tgapi.Answer{}, err
	}
	page, err := s.page(ctx, p, now)
	return tgapi.Answer{Text: notice, Edit: page}, err
}

// continued is like resumed. The notice names the agent that gets the next message.
func (s *Screen) continued(ctx context.Context, p lang.Printer, now orchestrator.Session, err error) (tgapi.Answer,
	error) {
	if err != nil {
		return tgapi.Answer{}, err
	}
	st, err := s.o.Status(ctx, now.Conversation)
	who := render.AgentName(p, st.Agent)
	if account := st.Settings.Accounts[st.Agent]; account != "" {
		who = p.Text("limit.with", who, string(account))
	}
	notice := p.Text("sessions.resumed-with", who, s.title(p, now))
	return s.resumed(ctx, p, now, notice, err)
}

func (s *Screen) export(ctx context.Context, in orchestrator.ConversationID,
	id orchestrator.SessionID) (tgapi.Answer, error) {
	p := s.o.Lang.Of(in.Chat)
	now, err := s.o.Sessions.Session(ctx, in, id)
	if err != nil {
		return tgapi.Answer{}, err
	}
	text, err := s.o.Sessions.Export(ctx, in, id)
	if err != nil {
		return tgapi.Answer{}, err
	}
	file := message.Content{
		Text:  render.Plain(p.Text("sessions.exported", s.title(p, now))),
		Files: []message.File{{Name: "session.md", Content: text}},
	}
	return tgapi.Answer{Messages: []orchestrator.Message{message.Compose(in, file)}}, nil
}
