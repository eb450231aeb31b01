package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	Own    string // runs in the session of this name, which goes on beside the conversation's current one
	Agent  cli.Agent
	Model  cli.ModelID // only with Agent, as Effort
	Effort cli.Effort
	Dir    string // absolute, inside the roots; only with Own, for a session has one directory
	// Sandbox is SandboxDocker for a turn that must run in a sandbox whatever its project's policy, SandboxOff for one
	// that is refused if that policy is another; empty is the policy.
	Sandbox string
	Timeout time.Duration // 0: the house's
	// Silence is the answer that no user sees; see OnlyWord. Until another answer is there, the chat is not
	// told of the turn either.
	Silence string
	// Known is the Digest of an answer that the chat has: it is not shown once more. Until another answer is there,
	// the chat is not told of the turn either.
	Known string
	Title string // the first line of its card; empty for none
	Then  string // is said below a failure: what comes of it; empty for nothing
}

// again is what a person wants who has a turn run once more: to see what comes.
func (w Wants) again() Wants {
	w.Silence, w.Known, w.Then = "", "", ""
	return w
}

// OrderStore keeps the sessions of orders. internal/store implements it; Store.EnqueueTurn keeps Turn.Wants.
type OrderStore interface {
	// OwnSession is the session of a name in a conversation; empty for none.
	OwnSession(ctx context.Context, in ConversationID, name string) (SessionID, error)
	// CreateOwnSession stores s as the one of its name, and leaves the conversation's current session alone.
	CreateOwnSession(ctx context.Context, name string, s Session) error
}

// SubmitOrder puts a turn at the end of its conversation's queue, and never does anything to a turn that runs. It is
// durable when it returns. An order whose turn is there already, in whatever state, changes nothing and is no error.
// ErrQueueFull, and nothing stored, for a full queue; ErrOutsideRoot and ErrNotADir for a directory that cannot be,
// ErrBadChoice for no word of Wants.Sandbox. Whether there is a sandbox shows when the turn runs.
func (o *Orchestrator) SubmitOrder(ctx context.Context, order Order) error {
	if o.opts.Orders == nil {
		return ErrNoOrders
	}
	_, err := o.opts.Store.Turn(ctx, order.Turn)
	if err == nil || !errors.Is(err, ErrNoTurn) {
		return err
	}
	w := order.Wants
	if !slices.Contains([]string{"", SandboxDocker, SandboxOff}, w.Sandbox) {
		return fmt.Errorf("sandbox %q: %w", w.Sandbox, ErrBadChoice)
	}
	if w.Dir != "" {
		if w.Own == "" || !filepath.IsAbs(w.Dir) {
			return fmt.Errorf("%s: %w", w.Dir, ErrNotADir)
		}
		if w.Dir, err = o.resolveDir("", w.Dir); err != nil {
			return err
		}
	}
	receipt, err := o.enqueue(ctx, Turn{ID: order.Turn, Prompt: order.Prompt, Wants: w})
	if err == nil && receipt.Full {
		err = ErrQueueFull
	}
	return err
}

// wanting is what a conversation chose, with what a turn wants otherwise.
func (c Conversation) wanting(w Wants) Conversation {
	if w.Agent != "" {
		c.Agent, c.Model, c.Effort = w.Agent, w.Model, w.Effort
	}
	if w.Dir != "" {
		c.Dir = w.Dir
	}
	return c
}

// apart says whether a turn is none of what people talk about in its conversation, or has rights of its own: what they
// write before is not for its agent.
func (t Turn) apart() bool { return t.Wants.Own != "" || isQuiet(t) || !t.Prompt.Rights.ofChat() }

// ownSession gives the session of a name, or begins it anew: the reset rules hold for it too, and a session has
// one directory.
func (o *Orchestrator) ownSession(ctx context.Context, conv Conversation, t Turn) (Session, error) {
	id, err := o.opts.Orders.OwnSession(ctx, conv.ID, t.Wants.Own)
	if err != nil {
		return Session{}, fmt.Errorf("find session: %w", err)
	}
	if id != "" {
		s, err := o.opts.Store.Session(ctx, id)
		if err == nil && !o.expired(s) && s.Dir == o.dirOf(conv) {
			return s, nil
		}
		if err != nil && !errors.Is(err, ErrNoSession) {
			return Session{}, fmt.Errorf("load session: %w", err)
		}
	}
	s := o.newSession(conv, t)
	if err := o.opts.Orders.CreateOwnSession(ctx, t.Wants.Own, s); err != nil {
		return Session{}, fmt.Errorf("create session: %w", err)
	}
	return s, nil
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
