// Package consult is what users see of questions to models beside their session: /consult and /group, what becomes of such
// a question, and the answers, to which users can reply.
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

// The ops of the buttons. The name of a question follows.
const (
	opBegin  = "b"
	opRounds = "r" // the number of rounds stands between
	opCancel = "c"
	opAgain  = "a"
	opStop   = "s"
)

// Journal keeps questions, and finds and stores messages; see orchestrator.Journal.
type Journal interface {
	orchestrator.CardStore
	MessageAt(ctx context.Context, in orchestrator.ConversationID, id int) (orchestrator.Message, error)
	FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error
}

// Models finds models for a conversation.
type Models interface {
	// Find finds the model that a name means; problem says why it is none.
	Find(ctx context.Context, in orchestrator.ConversationID, name string) (c naming.Choice, problem *naming.Problem, err error)
	// WhyNot says in the chat what is wrong with a name.
	WhyNot(p lang.Printer, problem *naming.Problem) string
	// Entries lists the agents and their models.
	Entries(ctx context.Context, in orchestrator.ConversationID) ([]cli.MenuEntry, error)
}

// Options are what a Screen is made of. Consults may be nil; all else is required.
type Options struct {
	Consults orchestrator.Consults
	Models   Models
	Group    func() []string // the models that answer /group now; none chooses some
	Most     func() int      // how many messages show an answer now; 0 is no limit
	Messages *message.Messages
	Journal  Journal
	Finish   func(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool)
	Beside   func(func(ctx context.Context)) // runs what no handler waits for
	NewID    func() string                   // names questions
	Lang     *lang.Choices
	Log      *slog.Logger
	Now      func() time.Time
}

// Screen asks what users ask. A question that ductor was restarted over is not repeated: its message says so, and has a
// button for that. Calls about one conversation are made one at a time.
type Screen struct{ o Options }

// New makes a Screen.
func New(o Options) *Screen { return &Screen{o} }

// Offered says whether models can be asked here.
func (s *Screen) Offered() bool { return s.o.Consults != nil }

// kind says what a question is.
type kind string

const (
	ofOne   kind = "one"
	ofGroup kind = "group"
)

// question is what a user asked, as the journal keeps it.
type question struct {
	Kind    kind                       `json:"kind"`
	Models  []orchestrator.ModelChoice `json:"models,omitempty"`
	Follows orchestrator.ConsultID     `json:"follows,omitempty"`
	Rounds  int                        `json:"rounds,omitempty"`
	Text    string                     `json:"text"`
	ReplyTo int                        `json:"reply_to"` // the user's message
	Taken   int64                      `json:"taken"`    // the update that began a group, asked it again or put it aside; 0 while none has
}

func (q question) group(in orchestrator.ConversationID) orchestrator.GroupQuestion {
	return orchestrator.GroupQuestion{Conversation: in, Panel: q.Models, Rounds: q.Rounds, Text: q.Text}
}

// Asked is a command of a user.
type Asked struct {
	By      orchestrator.Press
	Args    string
	Message int    // the user's
	Context string // what the message answers to; empty or ending in a line break
}

// mostQuestion bounds a question, in bytes. Telegram's messages are shorter.
const mostQuestion = 64 << 10

const (
	questionPrefix = "question/" // of the keys of what is kept, and of the message that says what becomes of it
	answerPrefix   = "answer/"   // of the keys of answers: the agent and the side session follow
)

func answerKey(a orchestrator.ConsultAnswer, question string, n int) string {
	return fmt.Sprint(answerPrefix, a.Model.Agent, "/", a.Consult, "/", question, "/", n)
}

// answerOf reads the side session of an answer off its key.
func answerOf(key string) (orchestrator.ConsultID, cli.Agent, bool) {
	rest, ok := strings.CutPrefix(key, answerPrefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 4 {
		return "", "", false
	}
	return orchestrator.ConsultID(parts[1]), cli.Agent(parts[0]), true
}

// take has a press be the one that decides on a question. ErrRepeated if another was.
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

// name is a model as texts name it.
func (*Screen) name(p lang.Printer, m orchestrator.ModelChoice) string {
	return render.ModelText(p, m.Agent, m.Model)
}

func keyOf(in orchestrator.ConversationID, id string) string {
	return fmt.Sprint(questionPrefix, in.Key(), "/", id)
}

func (s *Screen) save(ctx context.Context, in orchestrator.ConversationID, id string, q question) error {
	return message.SaveValue(ctx, s.o.Journal, keyOf(in, id), q)
}

func (s *Screen) load(ctx context.Context, in orchestrator.ConversationID, id string) (q question, there bool, err error) {
	return message.LoadValue[question](ctx, s.o.Journal, keyOf(in, id))
}
