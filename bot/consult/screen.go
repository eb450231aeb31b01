// Package consult implements the commands /consult and /group, with which users ask models other than the agent of the
// conversation. The package shows the progress of a question and the answers. Users can reply to an answer to ask the
// model again, or send the answer to the conversation's agent. Each question is stored with its answer as an entry of a
// session.
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

// Action is the first part of the data of all buttons of this package.
const Action = "Q"

// Operations of the buttons. The ID of the question follows in the button's data.
const (
	opBegin  = "b"
	opRounds = "r" // the button's data contains the number of rounds and the ID
	opCancel = "c"
	opAgain  = "a"
	opStop   = "s"
	// Operations of the buttons below an answer. The data contains the ID of the session entry that stores the answer.
	// For opGive, the data also contains an agentCode.
	opGive = "g"
	opOn   = "o"
)

// Journal stores questions, and finds and stores messages. See orchestrator.Journal.
type Journal interface {
	orchestrator.CardStore
	MessageAt(ctx context.Context, in orchestrator.ConversationID, id int) (orchestrator.Message, error)
	FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error
}

// Models finds models for a conversation.
type Models interface {
	// Find returns the model with the given name. If no model or several models have this name, Find returns a problem.
	Find(ctx context.Context, in orchestrator.ConversationID, name string) (c naming.Choice, problem *naming.Problem,
		err error)
	// WhyNot explains a problem of Find to users.
	WhyNot(p lang.Printer, problem *naming.Problem) string
	// Entries lists the agents with their models.
	Entries(ctx context.Context, in orchestrator.ConversationID) ([]cli.MenuEntry, error)
}

// Entries reads the entries of sessions, and selects a conversation's current session. See orchestrator.Sessions.
type Entries interface {
	Entry(ctx context.Context, in orchestrator.ConversationID, id cli.TurnID) (orchestrator.Turn, error)
	Resume(ctx context.Context, in orchestrator.ConversationID, id orchestrator.SessionID) (orchestrator.Session, error)
}

// Desk accepts the prompts of conversations. See bot.Desk.
type Desk interface {
	Status(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Status, error)
	Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (orchestrator.Receipt, error)
}

// Options configures a Screen. All fields except Consults are required.
type Options struct {
	Consults orchestrator.Consults
	Models   Models
	Entries  Entries
	Desk     Desk
	Group    func() []string // names of the models that answer /group; if empty, ductor chooses
	Most     func() int      // maximum number of messages per answer; 0 means no limit
	Messages *message.Messages
	Journal  Journal
	Finish   func(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool)
	Beside   func(func(ctx context.Context)) // starts a goroutine
	NewID    func() string                   // returns an ID for a new question
	Lang     *lang.Choices
	Log      *slog.Logger
	Now      func() time.Time
}

// Screen sends users' questions to models. If a restart interrupts a question, ductor does not repeat the question
// automatically. The progress message of the question then has a button that asks the question again. Methods may be
// called concurrently only for different conversations.
type Screen struct{ o Options }

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o} }

// Offered reports whether users can ask models. It returns false if Options.Consults is nil.
func (s *Screen) Offered() bool { return s.o.Consults != nil }

// question is a question of a user. It is stored in the database.
type question struct {
	Models  []orchestrator.ModelChoice `json:"models,omitempty"`  // models to ask; several for a group
	Session string                     `json:"follows,omitempty"` // ID or name; see orchestrator.ConsultQuestion
	Rounds  int                        `json:"rounds,omitempty"`
	Text    string                     `json:"text"`
	ReplyTo int                        `json:"reply_to"` // ID of the user's message
	// Taken is the ID of the update with the button press that started, repeated or cancelled the question. It is 0
	// before such a press.
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

// Asked is a user's command or reply that contains a question.
type Asked struct {
	By      orchestrator.Press
	Args    string
	Message int    // ID of the user's message
	Group   bool   // true for the command /group, which asks the configured models
	Context string // quotes the message that the user replied to; empty, or ends with a line break
}

// maxQuestion is the maximum length of a question in bytes.
const maxQuestion = 64 << 10

const (
	questionPrefix = "question/" // prefix of the keys of stored questions and of their progress messages
	advicePrefix   = "advice/"   // prefix of the keys of messages with answers
	answerPrefix   = "answer/"   // used by older versions of ductor instead of advicePrefix
)

func adviceKey(entry cli.TurnID, of string, n int) string {
	return fmt.Sprint(advicePrefix, entry, "/", of, "/", n)
}

// adviceOf parses the key of a message with an answer. It returns the ID of the session entry, or only the ID of the
// session if an older version of ductor created the key.
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

// take records that an update started, repeated or cancelled the question. It returns ErrRepeated if another update has
// already done so.
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

// name returns the name of a model, as shown to users.
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
