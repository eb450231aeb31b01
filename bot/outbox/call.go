package outbox

import (
	"context"
	"errors"
	"time"
)

// Chat identifies a chat and the kind of its budget. The zero value means that a call concerns no chat.
type Chat struct {
	ID    int64
	Group bool
}

// ChatOf returns the chat with an id. Telegram's groups and channels have negative ids.
func ChatOf(id int64) Chat { return Chat{ID: id, Group: id < 0} }

// Delivery is how the outbox treats a call that cannot be made at once.
type Delivery int

// Deliveries.
const (
	// Ensured calls of one key are made in order and retried until they are decided: after a rate limit, and while
	// Telegram has trouble or is unreachable. After an unknown outcome they are retried only if they are idempotent.
	Ensured Delivery = iota
	// Newest calls replace each other: of several with one key only the last is made. They build their content when
	// they are made. They are tried once, and again only after a rate limit.
	Newest
	// Optional calls are dropped if no budget is left for them, or if another call of the chat comes first.
	Optional
)

// Priority orders the calls of one chat. All calls of a priority are made before the calls of a later one.
type Priority int

// Priorities, the most urgent first.
const (
	// Urgent calls are made within a second, even if the budget is spent: the reply to an abort, the first text of an
	// answer.
	Urgent Priority = iota - 1
	// Awaited calls are other calls that a user waits for: replies, approvals, the end of an answer. An edit that makes
	// a button invalid is Awaited: a user may press the button until then.
	Awaited
	// Streaming calls are edits of a growing answer. They are paced, and leave the burst to the priorities before them.
	Streaming
	// Aside calls send an agent's text while it works. They wait for everything that a user waits for.
	Aside
	// Preview calls show content that fades unless it is sent again. They leave as much to the priorities before them
	// as Streaming calls do, and are not paced.
	Preview
	// Housekeeping calls change things that no user presses: pins, places in the queue, notes to delete. Never use it
	// for an edit that makes a button invalid.
	Housekeeping
	// Indicator calls are reactions and "typing…".
	Indicator
)

// Call is an outgoing call.
type Call struct {
	Chat     Chat
	Delivery Delivery
	Priority Priority
	// Key orders Ensured calls: a call in trouble delays only calls with its key. A Newest call replaces a waiting one
	// with the same key.
	Key string
	// Idempotent calls may be made again if it is unknown whether they happened.
	Idempotent bool
	// Delay delays a call that may turn out to be unnecessary. Any other call of the chat drops an Optional one that
	// waits. Drain makes an Ensured one at once. Not for Newest.
	Delay time.Duration
	// Parallel makes an Ensured call in parallel with others of the chat, because it may take minutes. Calls of one key
	// stay in order.
	Parallel bool
	// Run makes the call. It may run several times, but never twice at once, and must return when its ctx is done.
	Run func(ctx context.Context) error
}

// Errors of calls that ended without a result of Run.
var (
	ErrDropped  = errors.New("outbox: dropped, there was no budget")
	ErrReplaced = errors.New("outbox: replaced by a newer call")
	ErrFull     = errors.New("outbox: too many calls wait for this chat")
	ErrClosed   = errors.New("outbox: closed")
)

// ErrOtherForm is returned by Run if Telegram rejected the call and the next try makes it in another form. The call
// stays ahead of the others with its key.
var ErrOtherForm = errors.New("outbox: the next try makes the call in another form")

// ErrNotNeeded is returned by Run if it made no request, because nothing is left to do. The call then uses no budget
// and ends without an error.
var ErrNotNeeded = errors.New("outbox: the call is not needed")

var errPanic = errors.New("outbox: the call panicked")

// Trouble describes how the error of a call affects its next try. After is set for Limited.
type Trouble struct {
	Kind  TroubleKind
	After time.Duration // the pause that Telegram demands
}

// TroubleKind classifies errors by the reaction to them.
type TroubleKind int

// Kinds of trouble.
const (
	Settled TroubleKind = iota // success, or a failure that no retry will change
	Limited                    // rate limited
	NotMade                    // the call did not happen, and may succeed next time
	Unclear                    // the call may have happened
)

// verdict is the next step after a try.
type verdict int

const (
	decided verdict = iota
	again           // retry as soon as the budget allows
	afterPause
)

// judge returns the next step for a call in trouble.
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
