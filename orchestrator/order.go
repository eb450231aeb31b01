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

// Errors of SubmitOrder that callers distinguish.
var (
	ErrQueueFull = errors.New("the conversation's queue is full")
	ErrNoOrders  = errors.New("orders cannot be stored here")
)

// Order requests a turn without a chat message, for a schedule or an external program.
type Order struct {
	Turn   cli.TurnID // chosen by the caller: an order that is submitted twice runs once
	Prompt Prompt     // Message and Updates are empty
	Wants  Wants
}

// Wants overrides choices of the conversation for an order. Empty fields use the conversation's choices.
type Wants struct {
	// Own is the name of the order's own session. That session is independent of the conversation's current session.
	Own    string      `json:"own,omitempty"`
	Agent  cli.Agent   `json:"agent,omitempty"`
	Model  cli.ModelID `json:"model,omitempty"` // requires Agent, like Effort
	Effort cli.Effort  `json:"effort,omitempty"`
	Dir    string      `json:"dir,omitempty"` // absolute, inside the roots; requires Own: a session has one directory
	// Sandbox adds a requirement to the policy of the project; empty means only the policy. SandboxDocker runs the turn
	// in a sandbox even if the policy requires none. SandboxOff fails the turn if the policy requires a sandbox.
	Sandbox string        `json:"sandbox,omitempty"`
	Timeout time.Duration `json:"timeout_ns,omitempty"` // 0 means the agent's default
	// Silence is a word that means "nothing to report"; see OnlyWord. The chat does not show a turn whose answer is
	// only this word.
	Silence string `json:"silence,omitempty"`
	// Known is the Digest of an answer that the chat already shows. The chat does not show a turn with the same answer.
	Known string    `json:"known,omitempty"`
	Title string    `json:"title,omitempty"` // the first line of the card; empty for none
	Card  CardStyle `json:"-"`
	Purpose
}

// Purpose describes why a turn runs.
type Purpose struct {
	Task cli.Task `json:"task,omitempty"` // the kind of prompt
	Job  JobID    `json:"job,omitempty"`  // the job of the turn; empty for none

	// After is a turn that must succeed before this turn runs. Otherwise this turn fails. Empty means none.
	After cli.TurnID `json:"after,omitempty"`
	// Summarize makes ductor summarize history that does not fit. If no model is configured for summaries, the agent
	// itself summarizes.
	Summarize bool `json:"summarize,omitempty"`
}

// CardStyle configures the card of a turn.
type CardStyle struct {
	Quote bool      `json:"quote,omitempty"` // the card replies to the prompt, because several prompts were waiting
	Then  string    `json:"then,omitempty"`  // a sentence below a failure that explains the consequence; empty for none
	Think ThinkMode `json:"think,omitempty"` // whether the card shows reasoning; empty means the configured default

	Display DisplayMode `json:"display,omitempty"` // whether the card is a rich message
}

// OrderStore stores sessions with names. internal/store implements it; Store.EnqueueTurn stores Turn.Wants.
type OrderStore interface {
	SessionNames
	// CreateOwnSession stores s under a name. A session that had the name loses it. The conversation's current session
	// does not change.
	CreateOwnSession(ctx context.Context, name string, s Session) error
}

// Digest returns a hash of an answer. It ignores differences in white space.
func Digest(answer string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(answer), " ")))
	return hex.EncodeToString(sum[:16])
}

// OnlyWord reports whether an answer consists only of a word, in any case and with any punctuation. It returns false
// for an empty word.
func OnlyWord(answer, word string) bool {
	const around = " \t\r\n.!*_`'\"()"
	return word != "" && strings.EqualFold(strings.Trim(answer, around), strings.Trim(word, around))
}

// NeedNoMessage reports whether an outcome has nothing to report, so that the chat need not show it.
func (w Wants) NeedNoMessage(o Outcome) bool {
	return o.State == TurnDone && (OnlyWord(o.Text, w.Silence) || w.Known != "" && w.Known == Digest(o.Text))
}

// Sandboxes decides where agents run. Its methods neither contact a sandbox nor block. Safe for concurrent use.
type Sandboxes interface {
	// Of returns the sandbox of dir's project, or the conversation's own part of it. It returns "" for this host.
	Of(dir string, conv ConversationID) cli.Sandbox
	// Forced returns the sandbox for work in dir if the work must be sandboxed, but dir's project has no sandbox.
	Forced(dir string, conv ConversationID) (cli.Sandbox, error)
}

// Values of Wants.Sandbox. Empty means the policy of the directory's project.
const (
	SandboxDocker = "docker"
	SandboxOff    = "off"
)
