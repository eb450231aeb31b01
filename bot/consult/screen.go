// Package consult shows questions to models outside of a session's turns: /consult, the progress of a question, and
// the answers. Users can reply to an answer, or pass it to the conversation's agent.
package consult

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the action of the buttons of a Screen.
const Action = "Q"

// Operations of the buttons. The id of a question follows.
const (
	opBegin  = "b"
	opRounds = "r" // followed by the number of rounds, then the id
	opCancel = "c"
	opAgain  = "a"
	opStop   = "s"
	// Operations of the buttons below an answer. The id of the entry follows; for opGive, also the code of an agent.
	opGive = "g"
	opOn   = "o"
)

// Journal stores questions, and finds and stores messages; see orchestrator.Journal.
type Journal interface {
	orchestrator.CardStore
	MessageAt(ctx context.Context, in orchestrator.ConversationID, id int) (orchestrator.Message, error)
	FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error
}

// Models finds models for a conversation.
type Models interface {
	// Find returns the model for a name, or the problem with the name.
	Find(ctx context.Context, in orchestrator.ConversationID, name string) (c naming.Choice, problem *naming.Problem,
		err error)
	// WhyNot explains a problem with a name in the chat.
	WhyNot(p lang.Printer, problem *naming.Problem) string
	// Entries lists the agents and their models.
	Entries(ctx context.Context, in orchestrator.ConversationID) ([]cli.MenuEntry, error)
}

// Entries finds the entries of sessions; see orchestrator.Sessions.
type Entries interface {
	Entry(ctx context.Context, in orchestrator.ConversationID, id cli.TurnID) (orchestrator.Turn, error)
	Resume(ctx context.Context, in orchestrator.ConversationID, id orchestrator.SessionID) (orchestrator.Session, error)
}

// Desk runs the turns of conversations; see bot.Desk.
type Desk interface {
	Status(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Status, error)
	Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
}

// Options configures a Screen. Consults may be nil; everything else is required.
type Options struct {
	Consults orchestrator.Consults
	Models   Models
	Entries  Entries
	Desk     Desk
	Group    func() []string // returns the models that answer /group; nil: choose them automatically
	Most     func() int      // returns the maximum number of messages that show one answer; 0: no limit
	Messages *message.Messages
	Journal  Journal
	Finish   func(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool)
	Beside   func(func(ctx context.Context)) // starts a function in its own goroutine
	NewID    func() string                   // returns a new id for a question
	Lang     *lang.Choices
	Log      *slog.Logger
	Now      func() time.Time
}

// Screen asks the questions of users. It does not repeat a question that a restart interrupted. The question's
// message reports the restart and has a button that repeats the question. Calls for one conversation must not be
// concurrent.
type Screen struct{ o Options }

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o} }

// Offered reports whether consultations are configured.
func (s *Screen) Offered() bool { return s.o.Consults != nil }

// question is a user's question in the form that the journal stores.
type question struct {
	Models  []orchestrator.ModelChoice `json:"models,omitempty"`  // more than one for a group
	Session string                     `json:"follows,omitempty"` // see orchestrator.ConsultQuestion
	Rounds  int                        `json:"rounds,omitempty"`
	Text    string                     `json:"text"`
	ReplyTo int                        `json:"reply_to"` // the user's message
	// the update that started, repeated or dismissed the question; 0 before that
	Taken int64 `json:"taken"`
}

func (q question) isGroup() bool { return len(q.Models) > 1 }

func (q question) group(in orchestrator.ConversationID, by orchestrator.PersonID) orchestrator.GroupQuestion {
	return orchestrator.GroupQuestion{ConsultQuestion: q.one(in, by), Panel: q.Models, Rounds: q.Rounds}
}

func (q question) one(in orchestrator.ConversationID, by orchestrator.PersonID) orchestrator.ConsultQuestion {
	return orchestrator.ConsultQuestion{Conversation: in, Person: by, Session: q.Session, Model: q.Models[0],
		Text: q.Text}
}

// Asked is a user's command or reply that asks a question.
type Asked struct {
	By      orchestrator.Press
	Args    string
	Message int    // the user's message
	Group   bool   // the command is /group without names of models
	Context string // quote of the message that the user replied to; empty, or ends in a line break
}

// maxQuestion limits a question, in bytes. Telegram's messages are shorter.
const maxQuestion = 64 << 10

const (
	questionPrefix = "question/" // starts the keys of stored questions, and of their progress messages
	advicePrefix   = "advice/"   // starts the keys of answers; the entry follows
	answerPrefix   = "answer/"   // starts the keys of answers from older versions; the agent and the session follow
)

func adviceKey(entry cli.TurnID, of string, n int) string {
	return fmt.Sprint(advicePrefix, entry, "/", of, "/", n)
}

// adviceOf parses the entry from the key of an answer, or the session from an older key.
func adviceOf(key string) (entry cli.TurnID, session string, ok bool) {
	parts := strings.Split(key, "/")
	switch {
	case strings.HasPrefix(key, advicePrefix) && len(parts) == 4:
		return cli.TurnID(parts[1]), "", true
	case strings.HasPrefix(key, answerPrefix) && len(parts) == 5:
		return "", parts[2], true
	}
	return "", "", false
}

// take records the press that decides about a question. It returns ErrRepeated if another press did so before.
func (s *Screen) take(ctx context.Context, by orchestrator.Press, id string, q question) error {
	if q.Taken != 0 && q.Taken != by.Updates[0] {
		return orchestrator.ErrRepeated
	}
	q.Taken = by.Updates[0]
	return s.save(ctx, by.Conversation, id, q)
}

func (s *Screen) button(p lang.Printer, text lang.Key, op, id string) []tgapi.Button {
	return []tgapi.Button{tgapi.NewButton(p.Text(text), Action, op+":"+id)}
}

// name returns the name of a model for users.
func (*Screen) name(p lang.Printer, m orchestrator.ModelChoice) string {
	return render.ModelText(p, m.Agent, m.Model)
}

func (s *Screen) nameAll(p lang.Printer, all []orchestrator.ModelChoice) string {
	var names []string
	for _, m := range all {
		names = append(names, s.name(p, m))
	}
	return p.List(names...)
}

func keyOf(in orchestrator.ConversationID, id string) string {
	return fmt.Sprint(questionPrefix, in.Key(), "/", id)
}

func (s *Screen) save(ctx context.Context, in orchestrator.ConversationID, id string, q question) error {
	return message.SaveValue(ctx, s.o.Journal, keyOf(in, id), q)
}

func (s *Screen) load(ctx context.Context, in orchestrator.ConversationID, id string) (q question, there bool,
	err error) {
	return message.LoadValue[question](ctx, s.o.Journal, keyOf(in, id))
}
