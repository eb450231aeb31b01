package orchestrator

import (
	"cmp"
	"context"
	"strings"
	"time"

	"ductor/cli"
)

// ModelChoice selects a model. An empty model or effort means the agent's default.
type ModelChoice struct {
	Agent  cli.Agent
	Model  cli.ModelID
	Effort cli.Effort
}

// String returns the model in the notation of /model.
func (m ModelChoice) String() string { return strings.Trim(string(m.Agent)+"/"+string(m.Model), "/") }

// ConsultQuestion is a question to a model outside of the turns of a session. The agent that answers may only read
// files, unless the question is part of Work.
type ConsultQuestion struct {
	Conversation ConversationID
	Person       PersonID   // the user who asks, or the user of the turn that asks
	Asks         cli.TurnID // the turn whose agent asks; empty if a user asks
	// Session is the ID or the name of a session; see Consults. If it is empty, the question belongs to the session of
	// the turn that asks. If no turn asks, it belongs to the current session of the conversation.
	Session string
	Model   ModelChoice // the zero value is the last model asked in the session
	Text    string
	Context ContextFiles
	Wait    time.Duration // the time limit; 0 is the engine's limit
}

// ContextFiles are files that belong to a question. The model reads their contents; the stored entry contains only
// their names.
type ContextFiles struct {
	Files    []Attachment
	Contents string // text for the prompt; ends in an empty line; empty without files
}

// ConsultAnswer is a model's answer.
type ConsultAnswer struct {
	Session  SessionID // session that contains the entry
	Entry    cli.TurnID
	Model    ModelChoice // the model that the agent reported, or else the model of the question
	Text     string      // shortened if the answer was long
	Whole    string      // the whole answer; empty if Text is whole
	LeftOut  int         // number of entries of the session that were shortened or left out
	Usage    cli.Usage
	CostUSD  float64 // 0 if the agent does not report it
	Duration time.Duration
}

// All returns the whole answer.
func (a ConsultAnswer) All() string { return cmp.Or(a.Whole, a.Text) }

// GroupQuestion is a question to several models. In each round after the first, the models see the answers of the
// previous round. At the end the first model with an answer writes the conclusion.
type GroupQuestion struct {
	ConsultQuestion               // its Model is not used
	Panel           []ModelChoice // GroupLeast to GroupMost models
	Rounds          int           // 1 to GroupRounds
}

// Work is a task that one agent delegates to another.
type Work struct {
	ConsultQuestion // Conversation is the conversation of For
	// For is the turn that needs the work. The work has the rights and the directory of that turn, and ends with it.
	For          ActiveTurn
	Role         string         // the name of the role that the agent plays; empty for none
	Instructions string         // text for the system prompt, such as the role's
	Tools        []cli.ToolList // apply in addition to the turn's tool lists
}

// Limits of a group.
const (
	GroupLeast  = 2 // models
	GroupMost   = 4
	GroupRounds = 3
)

// GroupStep is the answer of one model of a group, or its error.
type GroupStep struct {
	Round  int // from 1
	Model  ModelChoice
	Answer ConsultAnswer
	Err    error
}

// GroupAnswer is the result of a group: the last answer of each model, and the conclusion. The first model with an
// answer writes the conclusion.
type GroupAnswer struct {
	Steps      []GroupStep // in the order of Panel
	Conclusion GroupStep
}

// Estimate predicts the cost of questions before ductor asks them.
type Estimate struct {
	Questions int
	Tokens    int64
	CostUSD   float64
	Unpriced  int // questions to models without a known price
}

// Consults asks models outside of the turns of conversations. Package orchestrator/consult implements it.
type Consults interface {
	// Begin registers a question of a conversation before it is asked, so that Asking counts it. The returned context
	// ends with end and with Abort; pass it to the methods below. A question with another context counts only while Ask
	// or Group runs. The caller must call end, and may call it twice.
	Begin(ctx context.Context, in ConversationID) (_ context.Context, end func())
	// Ask asks a model and waits for its answer. It finds the session with FindSession, and creates a session if none
	// has the name. It stores question and answer as an entry of the session. A question that fails leaves no entry.
	//
	// Ask ends with ctx, with Abort and with Close. It returns one of these errors:
	//   - ErrNoConsult: the question names no model, and no model was asked in the session before
	//   - ErrTooManyConsults: too many questions run at the same time
	//   - side.ErrTooLate, a *cli.Failure, cli.ErrAborted, or ErrShutdown
	Ask(ctx context.Context, q ConsultQuestion) (ConsultAnswer, error)
	// Group asks several models in parallel, round by round. Then the first model with an answer writes the conclusion.
	// Group calls step for each answer; the calls are serial. It returns ErrNoGroup and the existing answers if fewer
	// than two models answered in a round.
	Group(ctx context.Context, q GroupQuestion, step func(GroupStep)) (GroupAnswer, error)
	// Estimate predicts the cost of a group from the known prices of its models.
	Estimate(q GroupQuestion, models []cli.MenuEntry) Estimate
	// Last returns the model that was last asked in a session of a conversation. If idOrName is empty, it searches all
	// sessions of the conversation. It returns ErrNoConsult if no model was asked.
	Last(ctx context.Context, in ConversationID, idOrName string) (ModelChoice, error)
	// Asking returns the number of unanswered questions of a conversation. It does not block.
	Asking(in ConversationID) int
	// Abort cancels the questions of a conversation and returns their number. It does not block.
	Abort(in ConversationID) int
}

// ConsultStore stores consultations and work. internal/store implements it.
type ConsultStore interface {
	// AddEntry stores an ended consultation or ended work with its steps, and adds the entry to the totals of the
	// session.
	AddEntry(ctx context.Context, t Turn, steps []Step) error
	// LastAside returns the newest entry of a kind in a session. If id is empty, it searches all sessions of the
	// conversation. If no entry has the kind, it returns the newest entry of any kind that is not a turn, or
	// ErrNoConsult.
	LastAside(ctx context.Context, in ConversationID, id SessionID, kind EntryKind) (Turn, error)
	// SetAgentSession and EntriesAfter are the methods of Store.
	SetAgentSession(ctx context.Context, id SessionID, of AgentEnv, own AgentSession) error
	EntriesAfter(ctx context.Context, id SessionID, after int64, limit int) ([]Turn, error)
}
