package orchestrator

import (
	"cmp"
	"context"
	"strings"
	"time"

	"ductor/cli"
)

// ModelChoice is a model that answers. An empty model or effort is the agent's own default.
type ModelChoice struct {
	Agent  cli.Agent
	Model  cli.ModelID
	Effort cli.Effort
}

// String is the model as /model takes it.
func (m ModelChoice) String() string { return strings.Trim(string(m.Agent)+"/"+string(m.Model), "/") }

// ConsultID names a side session.
type ConsultID string

// Consult is a side session: what a model is asked beside the turns of a conversation. Its agent only reads, but for what is Work.
type Consult struct {
	ID           ConsultID
	Conversation ConversationID
	Model        ModelChoice
	Sandbox      cli.Sandbox
	Dir          string
	Home         string             // the session whose home its agent has, where sessions have homes
	Own          cli.AgentSessionID // empty where the agent named none
	Said         string             // the newest questions and answers, for an agent that cannot resume
	Used         time.Time
}

// ConsultQuestion is what a model is asked in a side session.
type ConsultQuestion struct {
	Conversation ConversationID
	Asks         cli.TurnID  // the turn whose agent asks; empty: a user asks
	Follows      ConsultID   // the side session to continue; empty begins one
	Model        ModelChoice // of a side session that begins
	Text         string
	Wait         time.Duration // after which it is given up; 0 is a limit of the engine
}

// ConsultAnswer is what a model answered in a side session.
type ConsultAnswer struct {
	Consult  ConsultID   // to ask on
	Model    ModelChoice // the model as the agent named it, where it did
	Text     string      // in short where it was long
	Whole    string      // all of it; empty where Text is
	Usage    cli.Usage
	CostUSD  float64 // 0 where the agent does not say
	Duration time.Duration
}

// All is all that the model answered.
func (a ConsultAnswer) All() string { return cmp.Or(a.Whole, a.Text) }

// GroupQuestion is what several models are asked. In each round after the first they see what the others answered in the round
// before; then the first of them concludes.
type GroupQuestion struct {
	Conversation ConversationID
	Asks         cli.TurnID    // the turn whose agent asks; empty: a user asks
	Panel        []ModelChoice // GroupLeast to GroupMost
	Rounds       int           // 1 to GroupRounds
	Text         string
	Wait         time.Duration // of each question; 0 is a limit of the engine
}

// Work is a task that an agent has another one do in a side session.
type Work struct {
	ConsultQuestion // Conversation is that of For
	// For is the turn that it is done for: with its rights, where it works, and as long as it runs.
	For          ActiveTurn
	Instructions string         // for the system prompt: a role
	Tools        []cli.ToolList // count besides those of the turn
}

// Limits of a group.
const (
	GroupLeast  = 2 // models
	GroupMost   = 4
	GroupRounds = 3
)

// GroupStep is what a model of a group answered, or why it did not.
type GroupStep struct {
	Round  int // from 1
	Model  ModelChoice
	Answer ConsultAnswer
	Err    error
}

// GroupAnswer is what came of a group: the last that each model answered, and the conclusion of the first that did.
type GroupAnswer struct {
	Steps      []GroupStep // in the order of the panel
	Conclusion GroupStep
}

// Estimate is what questions will take, before they are asked.
type Estimate struct {
	Questions int
	Tokens    int64
	CostUSD   float64
	Unpriced  int // questions to models whose price is not known
}

// Consults asks models beside the turns of conversations; package orchestrator/consult implements it.
type Consults interface {
	// Begin counts a question of a conversation from now on, before it is asked, and until end is called: Abort ends the context,
	// with which the methods below are then called, and so does end, which may be called twice. A question that is asked with another
	// context counts while it is asked.
	Begin(ctx context.Context, in ConversationID) (_ context.Context, end func())
	// Ask asks a model and waits for its answer; see consult.Engine.
	Ask(ctx context.Context, q ConsultQuestion) (ConsultAnswer, error)
	// Group asks several models side by side, round by round, and has the first conclude. It calls step, one at a time, as they
	// answer. ErrNoGroup if fewer than two models answered in a round; what they answered is in the GroupAnswer then.
	Group(ctx context.Context, q GroupQuestion, step func(GroupStep)) (GroupAnswer, error)
	// Estimate says what a group will take, by what the models cost as far as that is known.
	Estimate(q GroupQuestion, models []cli.MenuEntry) Estimate
	// Last is the side session of a conversation that was used last. ErrNoConsult if there is none.
	Last(ctx context.Context, in ConversationID) (Consult, error)
	// Asking counts the questions of a conversation that are not answered yet. It waits for nothing.
	Asking(in ConversationID) int
	// Abort ends the questions of a conversation and returns how many there were. It waits for nothing.
	Abort(in ConversationID) int
}

// ConsultStore keeps side sessions. internal/store implements it.
type ConsultStore interface {
	// Consult returns ErrNoConsult for an id that is not there.
	Consult(ctx context.Context, id ConsultID) (Consult, error)
	// LastConsult is the side session of a conversation that was used last; ErrNoConsult if there is none.
	LastConsult(ctx context.Context, in ConversationID) (Consult, error)
	SaveConsult(ctx context.Context, c Consult) error
}
