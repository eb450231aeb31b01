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

// Order requests a turn that no chat message started, for example for a schedule or an external program.
type Order struct {
	Turn   cli.TurnID // ID of the turn; a second order with the same ID does nothing
	Prompt Prompt     // without Message and Updates, which only prompts in a chat have
	Wants  Wants
}

// Wants contains the settings of an Order. Each setting that is not empty replaces the choice of the conversation.
type Wants struct {
	// Own is the name of a session. Only orders with this name use the session. The current session of the conversation
	// does not change.
	Own    string      `json:"own,omitempty"`
	Agent  cli.Agent   `json:"agent,omitempty"`
	Model  cli.ModelID `json:"model,omitempty"` // requires Agent, like Effort
	Effort cli.Effort  `json:"effort,omitempty"`
	// Dir is an absolute path inside the roots. It requires Own, because the current session of the conversation
	// already has a directory, and a session never changes its directory.
	Dir string `json:"dir,omitempty"`
	// Sandbox can make the policy of the project stricter. With SandboxDocker, the turn runs in a sandbox even if the
	// policy requires none. With SandboxOff, the turn fails if the policy requires a sandbox. If Sandbox is empty, only
	// the policy applies.
	Sandbox string        `json:"sandbox,omitempty"`
	Timeout time.Duration `json:"timeout_ns,omitempty"` // 0 means the agent's default
	// Silence is a word that means "nothing to report". If an answer consists of this word only (see OnlyWord), the
	// chat does not show the turn.
	Silence string `json:"silence,omitempty"`
	// Known is the Digest of an answer that the chat already shows. If the turn's answer has the same Digest, the chat
	// does not show the turn.
	Known string    `json:"known,omitempty"`
	Title string    `json:"title,omitempty"` // the first line of the message that shows the turn; empty for none
	Card  CardStyle `json:"-"`
	Purpose
}

// Override returns a copy of c in which the agent, model, effort and directory from w replace those that users chose.
func (w Wants) Override(c Conversation) Conversation {
	if w.Agent != "" {
		c.Agent, c.Model, c.Effort = w.Agent, w.Model, w.Effort
	}
	if w.Dir != "" {
		c.Dir = w.Dir
	}
	return c
}

// Purpose describes why a turn runs.
type Purpose struct {
	Task cli.Task `json:"task,omitempty"` // the kind of prompt
	Job  JobID    `json:"job,omitempty"`  // the job of the turn; empty for none

	// After is another turn on which this turn depends: if the other turn has not succeeded, this turn fails at its
	// start. Empty means none.
	After cli.TurnID `json:"after,omitempty"`
	// Summarize is set if ductor must summarize history that is too long for the prompt. If the configuration has no
	// model for summaries, the turn's own agent writes the summary.
	Summarize bool `json:"summarize,omitempty"`
}

// CardStyle configures the card, which is the message that shows the turn.
type CardStyle struct {
	// Quote makes the card a reply to the message with the prompt. This is useful if several prompts were waiting.
	Quote bool `json:"quote,omitempty"`
	// Then is a sentence about the next step after a failure, such as a retry. The card shows it below the failure.
	// Empty means none.
	Then  string    `json:"then,omitempty"`
	Think ThinkMode `json:"think,omitempty"` // whether the card shows reasoning; empty means the configured default

	Display DisplayMode `json:"display,omitempty"` // whether the card is a rich message
}

// OrderStore stores the named sessions of orders; see Wants.Own. internal/store implements it. Store.EnqueueTurn stores
// the orders themselves.
type OrderStore interface {
	SessionNames
	// CreateOwnSession stores s under a name. Another session with this name loses the name. The current session of the
	// conversation does not change.
	CreateOwnSession(ctx context.Context, name string, s Session) error
}

// Digest returns a hash of an answer. Answers that differ only in white space have the same hash.
func Digest(answer string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(answer), " ")))
	return hex.EncodeToString(sum[:16])
}

// OnlyWord reports whether an answer consists of the given word only. It ignores case and punctuation. For an empty
// word, it returns false.
func OnlyWord(answer, word string) bool {
	const around = " \t\r\n.!*_`'\"()"
	return word != "" && strings.EqualFold(strings.Trim(answer, around), strings.Trim(word, around))
}

// NeedNoMessage reports whether the chat need not show an outcome, because the outcome contains nothing new.
func (w Wants) NeedNoMessage(o Outcome) bool {
	return o.State == TurnDone && (OnlyWord(o.Text, w.Silence) || w.Known != "" && w.Known == Digest(o.Text))
}

// Sandboxes selects the sandbox in which agents run. Its methods do not contact the sandbox and do not block. They are
// safe for concurrent use.
type Sandboxes interface {
	// Of returns the sandbox for work in a directory, or "" for this host. If the owner has configured a separate
	// sandbox for each conversation, Of returns the sandbox of conv.
	Of(dir string, conv ConversationID) cli.Sandbox
	// Forced returns the sandbox for a turn with Wants.Sandbox SandboxDocker, in a project whose policy requires no
	// sandbox.
	Forced(dir string, conv ConversationID) (cli.Sandbox, error)
}

// SameEnvironment reports whether the policy and Wants.Sandbox select the same environments for two directories. It
// returns true if there are no sandboxes.
func SameEnvironment(in Sandboxes, one, two string) bool {
	if in == nil {
		return true
	}
	var none ConversationID
	forcedOne, errOne := in.Forced(one, none)
	forcedTwo, errTwo := in.Forced(two, none)
	return in.Of(one, none) == in.Of(two, none) && forcedOne == forcedTwo && (errOne == nil) == (errTwo == nil)
}

// Values of Wants.Sandbox. Empty means that the policy of the project decides.
const (
	SandboxDocker = "docker"
	SandboxOff    = "off"
)

// Shown returns a copy of the settings for a user who runs the turn again. The user wants to see the result, so the
// copy does not contain the settings that hide it.
func (w Wants) Shown() Wants {
	w.Silence, w.Known, w.Card.Then, w.After, w.Summarize = "", "", "", "", false
	return w
}

// AsPrompt returns a copy of the settings for a turn whose text is a prompt for the agent. If w is for a command, such
// as a compaction, the copy contains neither the task nor the title of the command.
func (w Wants) AsPrompt() Wants {
	if w.Task != cli.TaskPrompt {
		w.Task, w.Title = cli.TaskPrompt, ""
	}
	return w
}

// IsQuiet reports whether the turn belongs to a job that may have nothing to report.
func (t Turn) IsQuiet() bool { return t.Wants.Silence != "" || t.Wants.Known != "" }

// IsSeparate reports whether the turn does not belong to the user's dialog with the agent: it has its own session, is
// quiet, or has its own rights. Messages that users send while such a turn runs are not meant for its agent.
func (t Turn) IsSeparate() bool { return t.Wants.Own != "" || t.IsQuiet() || !t.Prompt.Rights.OfChat() }

// AcceptsMessages reports whether ductor may add messages to the turn while it runs. An agent's command, such as
// /compact, accepts none: the agent would read a message as arguments of the command.
func (t Turn) AcceptsMessages() bool { return t.Wants.Task == cli.TaskPrompt && !t.IsSeparate() }

// Repeated returns a new turn with the prompt, the session and the settings of t. If the directory of the session could
// not be used, the new turn has no session, because the conversation may work in another directory now.
func (t Turn) Repeated(by Press) Turn {
	if t.Outcome.Recovery.Kind == cli.NoDirectory {
		t.Session = ""
	}
	p := t.Prompt
	p.Person, p.Updates = by.Person, by.Updates
	return Turn{Again: t.ID, Session: t.Session, Prompt: p, Wants: t.Wants}
}
