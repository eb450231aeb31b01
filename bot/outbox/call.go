package outbox

import (
	"context"
	"errors"
	"time"
)

// Chat identifies a chat and the kind of its budget. The zero value is for calls that concern no chat.
type Chat struct {
	ID    int64
	Group bool
}

// ChatOf returns the chat with an id. Telegram's groups and channels have negative ids.
func ChatOf(id int64) Chat { return Chat{ID: id, Group: id < 0} }

// Delivery defines how the outbox treats a call that it cannot make immediately.
type Delivery int

// Deliveries.
const (
	// Ensured calls with the same key are made in order. They are retried after a rate limit, and while Telegram has
	// problems or is unreachable. After an unknown outcome, only idempotent calls are retried.
	Ensured Delivery = iota
	// Newest calls replace each other: of several waiting calls with the same key, only the last is made. They
	// compute their content when they run. They are retried only after a rate limit.
	Newest
	// Optional calls are dropped if no budget is left, or if another call of the chat is made first.
	Optional
)

// Priority orders the calls of one chat. Calls of a higher priority are made first.
type Priority int

// Priorities, the most urgent first.
const (
	// Urgent calls are made within a second, even without budget: the reply to an abort, the first text of an answer.
	Urgent Priority = iota - 1
	// Awaited calls are other calls that a user waits for: replies, approvals, the end of an answer. An edit that
	// invalidates a button is also Awaited, because users may press the button until then.
	Awaited
	// Streaming calls are edits of a growing answer. They are paced, and leave a part of the burst to higher
	// priorities.
	Streaming
	// Aside calls send an agent's text while it works. All calls that a user waits for come first.
	Aside
	// Preview calls show content that disappears unless it is repeated. They leave the same part of the burst as
	// Streaming calls, and are not paced.
	Preview
	// Housekeeping calls make changes that no user waits for: pins, places in the queue, notes to delete. Do not use
	// it for an edit that invalidates a button.
	Housekeeping
	// Indicator calls are reactions and "typing…".
	Indicator
)

// Call is an outgoing call.
type Call struct {
	Chat     Chat
	Delivery Delivery
	Priority Priority
	// Key groups calls. A retry of an Ensured call delays only calls with the same key. A Newest call replaces the
	// waiting call with the same key.
	Key string
	// Idempotent allows a retry after an unknown outcome.
	Idempotent bool
	// Delay postpones a call that may become unnecessary. If the call is Optional, any other call of the chat drops
	// it. Drain makes a waiting Ensured call immediately. Delay does not apply to Newest.
	Delay time.Duration
	// Parallel allows an Ensured call to run beside other calls of the chat, because it may take minutes. Calls with
	// the same key still run in order.
	Parallel bool
	// Run makes the call. It may be called several times, but not concurrently. It must return when ctx is done.
	Run func(ctx context.Context) error
}

// Errors of calls that ended without a result from Run.
var (
	ErrDropped  = errors.New("outbox: dropped, there was no budget")
	ErrReplaced = errors.New("outbox: replaced by a newer call")
	ErrFull     = errors.New("outbox: too many calls wait for this chat")
	ErrClosed   = errors.New("outbox: closed")
)

// ErrOtherForm is returned by Run if Telegram rejected the call, and the next attempt makes the call in another form.
// The call stays ahead of other calls with its key.
var ErrOtherForm = errors.New("outbox: the next try makes the call in another form")

// ErrNotNeeded is returned by Run if it made no request because nothing is left to do. The call then uses no budget
// and ends without an error.
var ErrNotNeeded = errors.New("outbox: the call is not needed")

var errPanic = errors.New("outbox: the call panicked")

// Trouble describes how the error of a call affects the next attempt. After is set for Limited.
type Trouble struct {
	Kind  TroubleKind
	After time.Duration // pause that Telegram demands
}

// TroubleKind classifies errors by how the outbox reacts.
type TroubleKind int

// Kinds of trouble.
const (
	Settled TroubleKind = iota // success, or a permanent failure
	Limited                    // a rate limit
	NotMade                    // the call had no effect, and may succeed next time
	Unclear                    // the call may have had an effect
)

// verdict is what the outbox does after an attempt.
type verdict int

const (
	decided verdict = iota
	again           // retry as soon as the budget allows
	afterPause
)

// judge returns the verdict about an attempt that ended with err.
func judge(c Call, err error, t Trouble) verdict {
	ensured := c.Delivery == Ensured
	switch {
	case ensured && errors.Is(err, ErrOtherForm):
		return again
	case t.Kind == Limited && c.Delivery != Optional:
		return again
	case ensured && t.Kind == NotMade, ensured && t.Kind == Unclear && c.Idempotent:
		return afterPause
	}
	return decided
}
