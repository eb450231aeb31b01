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

// ConsultID names a side session.
type ConsultID string

// Consult is a side session: questions to a model beside the turns of a conversation. Its agent may only read, unless
// it does Work.
type Consult struct {
	ID           ConsultID
	Conversation ConversationID
	Model        ModelChoice
	Sandbox      cli.Sandbox
	Dir          string
	Home         string             // the session whose home directory the agent uses, if sessions have homes
	Own          cli.AgentSessionID // empty if the agent named none
	Said         string             // the newest questions and answers, for an agent that cannot resume
	Used         time.Time
}

// ConsultQuestion is a question to a model in a side session.
type ConsultQuestion struct {
	Conversation ConversationID
	Asks         cli.TurnID  // the turn whose agent asks; empty if a user asks
	Follows      ConsultID   // the side session to continue; empty starts a new one
	Model        ModelChoice // of a new side session
	Text         string
	Wait         time.Duration // the time limit; 0 is the engine's limit
}

// ConsultAnswer is a model's answer in a side session.
type ConsultAnswer struct {
	Consult  ConsultID   // for follow-up questions
	Model    ModelChoice // the model as the agent named it, if it did
	Text     string      // shortened if the answer was long
	Whole    string      // the whole answer; empty if Text is whole
	Usage    cli.Usage
	CostUSD  float64 // 0 if the agent does not report it
	Duration time.Duration
}

// All returns the whole answer.
func (a ConsultAnswer) All() string { return cmp.Or(a.Whole, a.Text) }

// GroupQuestion is a question to several models. In each round after the first, they see the answers of the round
// before. At the end the first of them writes the conclusion.
type GroupQuestion struct {
	Conversation ConversationID
	Asks         cli.TurnID    // the turn whose agent asks; empty if a user asks
	Panel        []ModelChoice // GroupLeast to GroupMost
	Rounds       int           // 1 to GroupRounds
	Text         string
	Wait         time.Duration // the time limit of each question; 0 is the engine's limit
}

// Work is a task that one agent delegates to another in a side session.
type Work struct {
	ConsultQuestion // Conversation is the same as in For
	// For is the turn that needs the work. The work has the turn's rights and directory, and ends with it.
	For          ActiveTurn
	Instructions string         // for the system prompt, such as a role
	Tools        []cli.ToolList // apply in addition to those of the turn
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

// GroupAnswer is the result of a group: the last answer of each model, and the conclusion of the first model that wrote
// one.
type GroupAnswer struct {
	Steps      []GroupStep // in the order of the panel
	Conclusion GroupStep
}

// Estimate predicts the cost of questions before they are asked.
type Estimate struct {
	Questions int
	Tokens    int64
	CostUSD   float64
	Unpriced  int // questions to models without a known price
}

// Consults asks models beside the turns of conversations. Package orchestrator/consult implements it.
type Consults interface {
	// Begin registers a question of a conversation before it is asked. Asking counts the question until the caller
	// calls end, which it may do twice. Abort and end both cancel the returned context; the caller passes that context
	// to the methods below. With any other context a question counts only while Ask or Group runs.
	Begin(ctx context.Context, in ConversationID) (_ context.Context, end func())
	// Ask asks a model and waits for its answer. It ends with ctx, with Abort and with Close. It returns ErrNoConsult
	// or ErrElsewhere for an unknown side session, ErrConsultBusy or ErrTooManyConsults if there are too many
	// simultaneous questions, side.ErrTooLate, a *cli.Failure, cli.ErrAborted, or ErrShutdown. If a question fails, the
	// stored side session stays unchanged.
	Ask(ctx context.Context, q ConsultQuestion) (ConsultAnswer, error)
	// Group asks several models in parallel, round by round, and lets the first one conclude. It calls step serially as
	// answers arrive. It returns ErrNoGroup if fewer than two models answered in a round; the GroupAnswer then holds
	// their answers.
	Group(ctx context.Context, q GroupQuestion, step func(GroupStep)) (GroupAnswer, error)
	// Estimate predicts the cost of a group from the known prices of its models.
	Estimate(q GroupQuestion, models []cli.MenuEntry) Estimate
	// Last returns the most recently used side session of a conversation, or ErrNoConsult.
	Last(ctx context.Context, in ConversationID) (Consult, error)
	// Asking returns the number of unanswered questions of a conversation. It does not block.
	Asking(in ConversationID) int
	// Abort cancels the questions of a conversation and returns their number. It does not block.
	Abort(in ConversationID) int
}

// ConsultStore stores side sessions. internal/store implements it.
type ConsultStore interface {
	// Consult returns ErrNoConsult for an unknown ID.
	Consult(ctx context.Context, id ConsultID) (Consult, error)
	// LastConsult returns the most recently used side session of a conversation, or ErrNoConsult.
	LastConsult(ctx context.Context, in ConversationID) (Consult, error)
	SaveConsult(ctx context.Context, c Consult) error
}
