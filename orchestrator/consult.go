package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// ModelChoice is a model that answers. An empty model or effort is the agent's own default.
type ModelChoice struct {
	Agent  cli.Agent
	Model  cli.ModelID
	Effort cli.Effort
}

// ConsultID names a side session.
type ConsultID string

// Consult is a side session: what a model is asked beside the turns of a conversation. Its agent only reads.
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
	Follows      ConsultID   // the side session to continue; empty begins one
	Model        ModelChoice // of a side session that begins
	Text         string
	Wait         time.Duration // after which it is given up; 0 is a limit of the engine
}

// ConsultAnswer is what a model answered in a side session.
type ConsultAnswer struct {
	Consult   ConsultID   // to ask on
	Model     ModelChoice // the model as the agent named it, where it did
	Text      string
	Shortened bool // the model said more
	Usage     cli.Usage
	CostUSD   float64 // 0 where the agent does not say
	Duration  time.Duration
}

// ConsultStore keeps side sessions. internal/store implements it.
type ConsultStore interface {
	// Consult returns ErrNoConsult for an id that is not there.
	Consult(ctx context.Context, id ConsultID) (Consult, error)
	// LastConsult is the side session of a conversation that was used last; ErrNoConsult if there is none.
	LastConsult(ctx context.Context, in ConversationID) (Consult, error)
	SaveConsult(ctx context.Context, c Consult) error
}
