package orchestrator

import (
	"cmp"
	"context"
	"strings"
	"time"

	"ductor/cli"
)

// ModelChoice selects a model of an agent. An empty model or effort means the agent's default.
type ModelChoice struct {
	Agent  cli.Agent
	Model  cli.ModelID
	Effort cli.Effort
}

// String returns the choice as users write it after /model, for example "codex/gpt-5".
func (m ModelChoice) String() string { return strings.Trim(string(m.Agent)+"/"+string(m.Model), "/") }

// ConsultQuestion is a question to a model, outside of the turns of the session. A user or an agent asks it. The agent
// that answers may only read files. In a Work, the agent may also write.
type ConsultQuestion struct {
	Conversation ConversationID
	Person       PersonID // the user who asks, or whose turn the asking agent runs
	// For is the running turn whose agent asks. The model answers in the environment and the directory of that turn. If
	// For is nil, a user asks, and the model answers where the conversation's next turn would run.
	For *ActiveTurn
	// Session is the ID or the name of a session. If it is empty, the question belongs to the session of the turn whose
	// agent asks. If a user asks, it belongs to the current session of the conversation.
	Session string
	Model   ModelChoice // the zero value means the model that was asked last in the session
	Text    string
	Context ContextFiles
	Wait    time.Duration // the time limit; 0 means the default limit
}

// AskingTurn returns the ID of the turn whose agent asks, or "" if a user asks.
func (q ConsultQuestion) AskingTurn() cli.TurnID {
	if q.For == nil {
		return ""
	}
	return q.For.Turn.ID
}

// ContextFiles are files that were attached to a question. The model reads their contents. The stored entry contains
// only their names.
type ContextFiles struct {
	Files    []Attachment
	Contents string // text to put before the question; empty if there are no files
}

// ConsultAnswer is a model's answer.
type ConsultAnswer struct {
	Session  SessionID // session that contains the question and the answer as an entry
	Entry    cli.TurnID
	Model    ModelChoice // the model that answered, or the model in the question if the agent does not report it
	Text     string      // the answer; a long answer is shortened
	Whole    string      // the whole answer if Text is shortened; otherwise empty
	LeftOut  int         // number of entries of the session that the model did not get in full
	Usage    cli.Usage
	CostUSD  float64 // 0 if the agent does not report it
	Duration time.Duration
}

// All returns the answer in full length.
func (a ConsultAnswer) All() string { return cmp.Or(a.Whole, a.Text) }

// GroupQuestion is a question to several models. In each round after the first, each model gets the answers of the
// other models from the previous round. At the end, the first model that answered writes the conclusion.
type GroupQuestion struct {
	ConsultQuestion               // Panel replaces its field Model
	Panel           []ModelChoice // GroupLeast to GroupMost models
	Rounds          int           // 1 to GroupRounds
}

// Work is a task that the agent of a running turn delegates to another agent.
type Work struct {
	// ConsultQuestion is the task. Its field For must be set to the running turn. The other agent has the rights and
	// the directory of the running turn, and must stop when the running turn ends.
	ConsultQuestion
	Role         string         // the name of the configured role that the agent gets; empty for none
	Instructions string         // text for the agent's system prompt, for example the text of Role
	Tools        []cli.ToolList // allowed and forbidden tools, in addition to the turn's own lists
}

// Limits of a GroupQuestion.
const (
	GroupLeast  = 2 // minimum number of models
	GroupMost   = 4 // maximum number of models
	GroupRounds = 3 // maximum number of rounds
)

// GroupStep is the answer of one model to a GroupQuestion, or the error of that model.
type GroupStep struct {
	Round  int // number of the round, from 1
	Model  ModelChoice
	Answer ConsultAnswer
	Err    error
}

// GroupAnswer is the result of a GroupQuestion: the last answer of each model, and the conclusion.
type GroupAnswer struct {
	Steps      []GroupStep // one for each model, in the order of Panel
	Conclusion GroupStep
}

// Estimate predicts the cost of questions before ductor asks them.
type Estimate struct {
	Questions int
	Tokens    int64
	CostUSD   float64
	Unpriced  int // number of questions to models without a known price
}

// Consults asks models questions outside of the turns of conversations. Package orchestrator/consult implements it.
type Consults interface {
	// Begin registers a question before the caller asks it, so that Asking counts the question from now on. The caller
	// must pass the returned context to Ask or Group, and must call end afterwards. Calling end twice is safe. Both
	// Abort and end cancel the context. A question that was not registered counts only while Ask or Group runs.
	Begin(ctx context.Context, in ConversationID) (_ context.Context, end func())
	// Ask asks a model and waits for its answer. It stores question and answer as an entry of the session. If the
	// question fails, it stores nothing. If the session does not exist, Ask creates it.
	//
	// Ask stops when ctx is done and when Abort or Close is called. It returns one of these errors:
	//   - ErrNoConsult: the question names no model, and no model was asked in the session before
	//   - ErrTooManyConsults: too many questions run at the same time
	//   - side.ErrTooLate, a *cli.Failure, cli.ErrAborted, or ErrShutdown
	Ask(ctx context.Context, q ConsultQuestion) (ConsultAnswer, error)
	// Group asks several models in parallel, round by round, and then asks a model for a conclusion. It calls step for
	// each answer, never concurrently. If fewer than two models answer in a round, it returns the answers that it has
	// and ErrNoGroup.
	Group(ctx context.Context, q GroupQuestion, step func(GroupStep)) (GroupAnswer, error)
	// Estimate predicts the cost of a group question from the known prices of its models.
	Estimate(q GroupQuestion, models []cli.MenuEntry) Estimate
	// Last returns the model of the newest question in a session. If idOrName is empty, it searches all sessions of the
	// conversation. It returns ErrNoConsult if there was no question.
	Last(ctx context.Context, in ConversationID, idOrName string) (ModelChoice, error)
	// Asking returns how many questions of a conversation are not answered yet. It does not block.
	Asking(in ConversationID) int
	// Abort cancels the questions of a conversation and returns their number. It does not block.
	Abort(in ConversationID) int
	// MoveChat changes the chat ID in the unanswered questions of a group, so that Asking and Abort find them under the
	// new ID.
	MoveChat(from, to int64)
}

// ConsultStore stores consultations and delegated tasks (see Work). internal/store implements it.
type ConsultStore interface {
	// AddEntry stores a consultation or a delegated task after its end, with its steps. It also adds the entry's cost
	// and tokens to the totals of the session.
	AddEntry(ctx context.Context, t Turn, steps []Step) error
	// LastAside returns the newest entry of this kind in a session. If id is empty, it searches all sessions of the
	// conversation. If no entry has this kind, it returns the newest entry that is not a turn. If all entries are
	// turns, it returns ErrNoConsult.
	LastAside(ctx context.Context, in ConversationID, id SessionID, kind EntryKind) (Turn, error)
	// SetAgentSession and EntriesAfter: see Store.
	SetAgentSession(ctx context.Context, id SessionID, of AgentEnv, own AgentSession) error
	EntriesAfter(ctx context.Context, id SessionID, after int64, limit int) ([]Turn, error)
}
