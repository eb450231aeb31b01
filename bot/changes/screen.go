// Package changes implements the commands /diff and /checkpoint, and the buttons below the answers of turns that
// changed files. Users can show, undo, redo and commit the changes of a turn. They can also return all files to a
// restore point: a checkpoint, or the state before or after a turn.
package changes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the first part of the data of all buttons of this package. The data also contains the ID of a turn or
// checkpoint, so the buttons also work after a restart.
const Action = "U"

// op is the operation of a button. In most buttons, the ID of a turn or checkpoint follows in the data.
type op string

const (
	opUndo     op = "u"
	opRedo     op = "r"
	opDiff     op = "d"
	opCommit   op = "c" // asks the user for the commit message
	opCommits  op = "C" // commits with the proposed message
	opCancel   op = "x"
	opSince    op = "s" // followed by the first letters of the DiffSince and of the theme, and by a path
	opReturn   op = "t" // asks the user whether to return to a restore point
	opReturns  op = "T"
	opAfter    op = "A" // like opReturns, but returns the files to the state after the turn
	opSession  op = "h" // followed by a page number and the ID of a session
	opPoints   op = "p" // followed by a page number
	opDarkDiff op = "D"
)

// Store finds messages. See orchestrator.Journal.
type Store interface {
	FindMessage(ctx context.Context, key string) (orchestrator.Message, error)
	MessageAt(ctx context.Context, in orchestrator.ConversationID, id int) (orchestrator.Message, error)
}

// Options configures a Screen.
type Options struct {
	Changes orchestrator.FileChanges // nil if ductor does not record changes
	Store   Store
	Journal orchestrator.CardStore // stores which questions are open
	// Messages deletes questions that are no longer open.
	Messages *message.Messages
	// Rebutton replaces the buttons of a message. It does not wait for the request.
	Rebutton func(in orchestrator.ConversationID, message int, k tgapi.Keyboard)
	Spool    *message.Spool // stores pictures of diffs; if nil, diffs are sent as files
	Names    *tgapi.ChatNames
	Lang     *lang.Choices
	Log      *slog.Logger
	Now      func() time.Time
	// Session returns a button that leads to the page of a session. It can be nil.
	Session func(p lang.Printer, id orchestrator.SessionID) tgapi.Button
}

// Screen shows and undoes changes. It is safe for concurrent use.
type Screen struct{ o Options }

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o} }

func button(text string, what op, on string) tgapi.Button {
	return tgapi.NewButton(text, Action, string(what)+":"+on)
}

// Buttons returns the buttons below the answer of a turn. It returns none if the turn changed no files, or if the
// turn's changes cannot be undone.
func Buttons(p lang.Printer, turn string, c orchestrator.Changed) []tgapi.Button {
	if c.Files == 0 || c.NoUndo != "" {
		return nil
	}
	return []tgapi.Button{
		button(p.Text("changes.diff"), opDiff, turn), button(p.Text("changes.undo"), opUndo, turn),
		button(p.Text("changes.commit"), opCommit, turn),
	}
}

// Press handles a button of this package. pressed is the message with the button. data is the button's data without the
// action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, pressed tgapi.Pressed,
	data string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	what, id, _ := strings.Cut(data, ":")
	if s.o.Changes == nil {
		return tgapi.Stale(p), nil
	}
	a, err := s.act(ctx, by, pressed, op(what), id)
	if why := s.why(by.Conversation, err); why != "" {
		a, err = tgapi.Answer{Text: why, Instead: a.Instead}, nil
	}
	return a, err
}

func (s *Screen) act(ctx context.Context, by orchestrator.Press, on tgapi.Pressed, what op,
	id string) (tgapi.Answer, error) {
	p, messageID := s.o.Lang.Of(by.Conversation.Chat), on.Message
	switch what {
	case opUndo, opRedo:
		return s.turnBack(ctx, by, on, what, id)
	case opDiff, opDarkDiff:
		return s.diffOf(ctx, by, messageID, what == opDarkDiff, id)
	case opCommit:
		return s.askCommit(ctx, by, on, id)
	case opCommits:
		return s.commit(ctx, by, messageID, id)
	case opCancel:
		if err := s.closeQuestion(ctx, by.Conversation, id, messageID, ""); err != nil {
			return tgapi.Answer{}, err
		}
		return tgapi.Answer{Text: p.Text("common.cancelled"), Edit: tgapi.Page{Text: p.Text("common.cancelled")}}, nil
	case opSince:
		return s.pressSince(ctx, by, messageID, id)
	case opReturn:
		return s.askReturn(ctx, by, id)
	case opReturns:
		return s.goBack(ctx, by, id, orchestrator.BeforeTurn)
	case opAfter:
		return s.goBack(ctx, by, id, orchestrator.AfterTurn)
	case opSession:
		page, err := s.ofSession(ctx, by, id)
		return tgapi.Answer{Edit: page}, err
	case opPoints:
		n, _ := tgapi.ButtonNumber(id)
		page, err := s.points(ctx, by, n)
		return tgapi.Answer{Edit: page}, err
	}
	return tgapi.Stale(p), nil
}

// why returns a text for users about the error, or "" if the error is unexpected.
func (s *Screen) why(in orchestrator.ConversationID, err error) string {
	p := s.o.Lang.Of(in.Chat)
	var since *orchestrator.ChangedSince
	if errors.As(err, &since) {
		return p.Text("changes.changed-since", namesOf(since.Paths))
	}
	var foreign *orchestrator.ForeignRepository
	var writes *orchestrator.TurnWrites
	switch {
	case errors.As(err, &foreign):
		return render.ForeignRepository(p, foreign.Dir)
	case errors.As(err, &writes):
		return p.Text("changes.turn-runs", s.o.Names.Where(p, in, writes.In))
	case errors.Is(err, orchestrator.ErrInTheWay):
		return p.Text("changes.in-the-way", fileOf(err))
	case errors.Is(err, orchestrator.ErrGitFilter):
		return p.Text("changes.filter", fileOf(err))
	}
	for known, key := range map[error]lang.Key{
		orchestrator.ErrUndone: "changes.undone-already", orchestrator.ErrNotUndone: "changes.not-undone",
		orchestrator.ErrCommitted: "changes.committed-already", orchestrator.ErrNoIdentity: "changes.no-identity",
		orchestrator.ErrMerging:   "changes.merging",
		orchestrator.ErrNoChanges: "changes.gone", orchestrator.ErrNoRepository: "changes.no-repository",
		orchestrator.ErrOutsideRoot: "changes.no-repository",
		orchestrator.ErrDiffTooLong: "changes.too-long", orchestrator.ErrNotAllowed: "common.not-for-members",
		orchestrator.ErrElsewhere: "common.stale-button",
	} {
		if errors.Is(err, known) {
			return p.Text(key)
		}
	}
	return ""
}

// fileOf returns the file name at the end of an error's text.
func fileOf(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return render.ShortLine(text, 80)
}

// namesOf joins the first three paths, followed by "…" if there are more.
func namesOf(paths []string) string {
	text := ""
	for i, path := range paths {
		if i == 3 {
			return text + " …"
		}
		if i > 0 {
			text += ", "
		}
		text += render.ShortLine(path, 40)
	}
	return text
}

func (s *Screen) say(by orchestrator.Press, messageID int, text string, buttons ...tgapi.Button) orchestrator.Message {
	c := message.Content{Text: render.Plain(text), ReplyTo: messageID}
	if len(buttons) > 0 {
		c.Keyboard = tgapi.Keyboard{buttons}
	}
	return message.Compose(by.Conversation, c)
}

// turnBack undoes or redoes the changes of a turn, and reports it in a new message with the opposite button.
func (s *Screen) turnBack(ctx context.Context, by orchestrator.Press, on tgapi.Pressed, what op,
	id string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	undo, redo := button(p.Text("changes.undo"), opUndo, id), button(p.Text("changes.redo"), opRedo, id)
	was, now, text := undo, redo, ""
	if what == opUndo {
		c, err := s.o.Changes.Undo(ctx, by, cli.TurnID(id))
		if errors.Is(err, orchestrator.ErrUndone) {
			return tgapi.Answer{Instead: &redo}, err
		}
		if err != nil {
			return tgapi.Answer{}, err
		}
		if err := s.closeQuestion(ctx, by.Conversation, id, 0, p.Text("common.cancelled")); err != nil {
			s.o.Log.Warn("withdraw the question about a commit", "turn", id, "err", err)
		}
		text = p.Text("changes.undone", c.Changed.Files)
		if c.Changed.Ignored {
			text += "\n" + p.Text("changes.ignored")
		}
		if c.Commit != "" {
			text += "\n" + p.Text("changes.still-committed", short(c.Commit))
		}
	} else {
		c, err := s.o.Changes.Redo(ctx, by, cli.TurnID(id))
		if errors.Is(err, orchestrator.ErrNotUndone) {
			return tgapi.Answer{Instead: &undo}, err
		}
		if err != nil {
			return tgapi.Answer{}, err
		}
		was, now, text = redo, undo, p.Text("changes.redone", c.Changed.Files)
	}
	report := s.say(by, on.Message, text, now)
	instead, err := s.switchControls(ctx, on, id, was, now, report)
	if err != nil {
		s.o.Log.Warn("change the buttons of other messages", "turn", id, "err", err)
	}
	return tgapi.Answer{Messages: []orchestrator.Message{report}, Instead: &instead}, nil
}

func short(commit string) string { return commit[:min(len(commit), 10)] }

// commitKey is the prefix of the keys of messages that ask for a commit message. The IDs of the turn and the update
// follow.
const commitKey = "commit/"

// askCommit asks the user whether to commit with a proposed message. The user can reply with another message. askCommit
// withdraws an earlier question about the turn. If the earlier question is not in the chat yet, the user has tapped the
// button twice, and askCommit does nothing.
//
// If the changes are committed already, askCommit removes the pressed button.
func (s *Screen) askCommit(ctx context.Context, by orchestrator.Press, on tgapi.Pressed,
	id string) (tgapi.Answer, error) {
	c, err := s.o.Changes.Changes(ctx, by.Conversation, id)
	switch {
	case err != nil:
		return tgapi.Answer{}, err
	case !by.May(orchestrator.ReachFiles):
		return tgapi.Answer{}, orchestrator.ErrNotAllowed
	case c.Undone:
		return tgapi.Answer{}, orchestrator.ErrUndone
	case c.Commit != "":
		return tgapi.Answer{Instead: &tgapi.Button{}}, orchestrator.ErrCommitted
	}
	p := s.o.Lang.Of(by.Conversation.Chat)
	if coming, err := s.isComing(ctx, id); err != nil || coming {
		return tgapi.Answer{}, err
	}
	if err := s.closeQuestion(ctx, by.Conversation, id, 0, p.Text("common.cancelled")); err != nil {
		return tgapi.Answer{}, err
	}
	m := s.say(by, on.Message, p.Text("changes.ask-commit", c.Changed.Files, proposal(c)),
		button(p.Text("changes.commit"), opCommits, id), button(p.Text("common.cancel"), opCancel, id))
	m.Key = commitKey + id + "/" + fmt.Sprint(by.Updates)
	q := question{Key: m.Key}
	if on.Buttons != nil {
		q.Answer, q.Buttons = on.Message, on.Buttons.Without(button("", opCommit, id).Data)
	}
	return tgapi.Answer{Messages: []orchestrator.Message{m}}, s.openQuestion(ctx, id, q)
}

// subjectMost is the usual maximum length of a commit's subject, in UTF-16 units.
const subjectMost = 72

// proposal returns a commit message: the first words of the prompt. It cuts a long prompt between two words.
func proposal(c orchestrator.TurnChanges) string {
	title := render.OneLine(c.Title)
	text, _ := strings.CutSuffix(render.ShortLine(title, subjectMost), "…")
	if rest, ok := strings.CutPrefix(title, text); ok && rest != "" && rest[0] != ' ' {
		if space := strings.LastIndexByte(text, ' '); space > len(text)/2 {
			text = text[:space]
		}
	}
	return strings.TrimRight(text, " .,;:…")
}

func (s *Screen) commit(ctx context.Context, by orchestrator.Press, messageID int, id string) (tgapi.Answer, error) {
	c, err := s.o.Changes.Changes(ctx, by.Conversation, id)
	if err != nil {
		return tgapi.Answer{}, err
	}
	done, err := s.commitAs(ctx, by, id, proposal(c))
	if err != nil {
		return tgapi.Answer{}, err
	}
	if err := s.closeQuestion(ctx, by.Conversation, id, messageID, done); err != nil {
		s.o.Log.Warn("withdraw the question about a commit", "turn", id, "err", err)
	}
	return tgapi.Answer{Edit: tgapi.Page{Text: done}}, nil
}

// commitAs commits the changes of a turn. It returns ErrCommitted if someone has already committed them. In either
// case, commitAs removes the button that opened the question about the commit. The caller must close the question.
func (s *Screen) commitAs(ctx context.Context, by orchestrator.Press, id, text string) (string, error) {
	c, err := s.o.Changes.Commit(ctx, by, cli.TurnID(id), text)
	if err == nil || errors.Is(err, orchestrator.ErrCommitted) {
		if q, _, err := message.LoadValue[question](ctx, s.o.Journal, questionKey(id)); err == nil && q.Answer != 0 {
			s.o.Rebutton(by.Conversation, q.Answer, q.Buttons)
			if err := s.saveButtons(ctx, id, q.Answer, q.Buttons); err != nil {
				s.o.Log.Warn("record the buttons of an answer", "turn", id, "err", err)
			}
		}
	}
	if err != nil {
		return "", err
	}
	return s.o.Lang.Of(by.Conversation.Chat).Text("changes.committed", c.Changed.Files, short(c.Commit), text), nil
}

// Reply is a user's message that may be the message of a commit.
type Reply struct {
	By   orchestrator.Press
	To   int // ID of the bot's message
	Text string
}

// Replied handles a reply to the message that askCommit sent: it commits the changes, with the reply as the commit
// message. It returns false if the reply belongs to another message.
//
// If Replied returns true, the caller must first mark the reply as handled, and then call Withdraw. In the other order,
// a crash between these steps could make the next process send the reply to the agent as a prompt.
func (s *Screen) Replied(ctx context.Context, r Reply) (answer string, ok bool, err error) {
	by := r.By
	p := s.o.Lang.Of(by.Conversation.Chat)
	m, err := s.o.Store.MessageAt(ctx, by.Conversation, r.To)
	if err != nil || !strings.HasPrefix(m.Key, commitKey) {
		return "", false, err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(m.Key, commitKey), "/")
	answer, err = s.commitAs(ctx, by, id, r.Text)
	if why := s.why(by.Conversation, err); why != "" {
		return why, true, nil
	}
	if errors.Is(err, orchestrator.ErrBadChoice) {
		return p.Text("changes.no-message"), true, nil
	}
	return answer, true, err
}

// Withdraw closes a question about a commit, if the changes of the turn are committed. messageID is the message with
// the question. Withdraw deletes this message. If Telegram does not allow the deletion, the message shows the given
// text.
func (s *Screen) Withdraw(ctx context.Context, in orchestrator.ConversationID, messageID int, text string) error {
	m, err := s.o.Store.MessageAt(ctx, in, messageID)
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(m.Key, commitKey), "/")
	c, err := s.o.Changes.Changes(ctx, in, id)
	if err != nil || c.Commit == "" {
		return err
	}
	return s.closeQuestion(ctx, in, id, 0, text)
}
