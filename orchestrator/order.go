package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"ductor/cli"
)

// Errors of SubmitOrder that its callers tell apart.
var (
	ErrQueueFull = errors.New("the conversation's queue is full")
	ErrNoOrders  = errors.New("orders are not kept here")
)

// Order is a turn that no message asked for: a schedule did, or a program outside.
type Order struct {
	Turn   cli.TurnID // chosen by the caller, so that an order which is given twice runs once
	Prompt Prompt     // Message and Updates are empty
	Wants  Wants
}

// Wants is what an order wants otherwise than its conversation chose. What is empty is as the conversation chose.
type Wants struct {
	Own    string      `json:"own,omitempty"` // runs in the session of this name, which goes on beside the conversation's current one
	Agent  cli.Agent   `json:"agent,omitempty"`
	Model  cli.ModelID `json:"model,omitempty"` // only with Agent, as Effort
	Effort cli.Effort  `json:"effort,omitempty"`
	Dir    string      `json:"dir,omitempty"` // absolute, inside the roots; only with Own, for a session has one directory
	// Sandbox is SandboxDocker for a turn that must run in a sandbox whatever its project's policy, SandboxOff for one
	// that is refused if that policy is another; empty is the policy.
	Sandbox string        `json:"sandbox,omitempty"`
	Timeout time.Duration `json:"timeout_ns,omitempty"` // 0: that of the agents
	// Silence is the answer that no user sees; see OnlyWord. Until another answer is there, the chat is not
	// told of the turn either.
	Silence string `json:"silence,omitempty"`
	// Known is the Digest of an answer that the chat has: it is not shown once more. Until another answer is there,
	// the chat is not told of the turn either.
	Known string    `json:"known,omitempty"`
	Title string    `json:"title,omitempty"` // the first line of its card; empty for none
	Card  CardStyle `json:"-"`
	Purpose
}

// Purpose is what a turn is for.
type Purpose struct {
	Task cli.Task `json:"task,omitempty"` // what the prompt is to the agent
	Job  JobID    `json:"job,omitempty"`  // that it is a run of; empty for none

	After     cli.TurnID `json:"after,omitempty"`     // that must have gone well before, or this turn fails; empty for none
	Summarize bool       `json:"summarize,omitempty"` // the agent itself summarizes what it is told and does not fit, if no model is configured for that
}

// CardStyle is how the card of a turn looks.
type CardStyle struct {
	Quote bool      `json:"quote,omitempty"` // it replies to the prompt, since other prompts waited with it
	Then  string    `json:"then,omitempty"`  // is said below a failure: what comes of it; empty for nothing
	Think ThinkMode `json:"think,omitempty"` // whether it shows reasoning; empty means the configured default

	Display DisplayMode `json:"display,omitempty"` // whether it is a rich message
}

// OrderStore keeps the sessions of orders. internal/store implements it; Store.EnqueueTurn keeps Turn.Wants.
type OrderStore interface {
	// OwnSession is the session of a name in a conversation; empty for none.
	OwnSession(ctx context.Context, in ConversationID, name string) (SessionID, error)
	// CreateOwnSession stores s as the one of its name, and leaves the conversation's current session alone.
	CreateOwnSession(ctx context.Context, name string, s Session) error
}

// Digest tells answers apart; white space does not.
func Digest(answer string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(answer), " ")))
	return hex.EncodeToString(sum[:16])
}

// OnlyWord says whether an answer is only a word, however it is written. No word is never said.
func OnlyWord(answer, word string) bool {
	const around = " \t\r\n.!*_`'\"()"
	return word != "" && strings.EqualFold(strings.Trim(answer, around), strings.Trim(word, around))
}

// Sandboxes is the policy of where agents run. It makes no request and does not wait. Safe for concurrent use.
type Sandboxes interface {
	// Of is the sandbox of the project that dir is in, or the conversation's own part of it; empty for this host.
	Of(dir string, conv ConversationID) cli.Sandbox
	// Forced is the sandbox for work in dir that is to run in one although its project has none.
	Forced(dir string, conv ConversationID) (cli.Sandbox, error)
}

// The words of Wants.Sandbox. Empty is as the project of the directory has it.
const (
	SandboxDocker = "docker"
	SandboxOff    = "off"
)
