package outbox

import (
	"context"
	"errors"
	"time"
)

// Chat identifies a chat. Group reports whether the rate limit of groups applies to the chat. The zero value means no
// chat.
type Chat struct {
	ID    int64
	Group bool
}

// ChatOf returns the Chat with the given ID. Groups and channels have negative IDs.
func ChatOf(id int64) Chat { return Chat{ID: id, Group: id < 0} }

// Delivery decides how the outbox treats a call that must wait or has failed.
type Delivery int

// Values of Delivery.
const (
	// Ensured means that the call must be made. Ensured calls with the same key are made in order. They are retried
	// after a rate limit, and while Telegram is unreachable or has problems. If a call may have had an effect, it is
	// retried only if Call.Idempotent is set.
	Ensured Delivery = iota
	// Newest means that only the last of several waiting calls with the same key is made. Call.Run computes the
	// content, so that the content is current. A Newest call is retried only after a rate limit.
	Newest
	// Optional means that the call is dropped if it would exceed the budget, or if another call for the chat is made
	// first.
	Optional
)

// Priority is the urgency of a call. The waiting calls of a chat are made in the order of their priorities.
type Priority int

// Values of Priority, from most to least urgent.
const (
	// Urgent calls are the first text of an answer and the reply to an abort. They are made within a second, even if
	// they exceed the budget.
	Urgent Priority = iota - 1
	// Awaited calls are all other calls for which users are waiting: replies, approvals, the end of an answer. Edits
	// that remove a button are also Awaited, because users can press the button until the edit is made.
	Awaited
	// Streaming calls are edits of a growing answer. They are spread over time, and leave some of the budget to more
	// urgent calls.
	Streaming
	// Aside calls send a message that an agent wants to show while it is still working.
	Aside
	// Preview calls show something that disappears soon, such as a draft. They leave some of the budget to more urgent
	// calls, but are not spread over time.
	Preview
	// Housekeeping calls make changes for which no user is waiting, such as pinning a message. Edits that remove a
	// button must be Awaited instead.
	Housekeeping
	// Indicator calls are reactions and "typing…".
	Indicator
)

// Call is a request to Telegram that the outbox makes when the chat's budget allows.
type Call struct {
	Chat     Chat
	Delivery Delivery
	Priority Priority
	// Key identifies calls that belong together. While an Ensured call is being retried, other calls with the same key
	// wait. A Newest call replaces a waiting call with the same key.
	Key string
	// Idempotent allows the outbox to retry a call that may already have had an effect.
	Idempotent bool
	// Delay is a pause before a call that may become unnecessary. It must be 0 if Delivery is Newest. If Delivery is
	// Optional, the outbox drops the call when it makes another call for the chat during the pause. If Delivery is
	// Ensured, Drain ends the pause.
	Delay time.Duration
	// Parallel is set if the call may take minutes. The outbox then makes other calls for the chat at the same time,
	// but not calls with the same key. Delivery must be Ensured.
	Parallel bool
	// Run makes the request. It may be called again for a retry, but never concurrently. It must return when ctx is
	// done.
	Run func(ctx context.Context) error
}

// Errors of calls that Run did not finish.
var (
	ErrDropped  = errors.New("outbox: dropped, there was no budget")
	ErrReplaced = errors.New("outbox: replaced by a newer call")
	ErrFull     = errors.New("outbox: too many calls wait for this chat")
	ErrClosed   = errors.New("outbox: closed")
)

// ErrOtherForm is the error of Run if Telegram rejected the request, but Run can make the request in another form. The
// outbox then runs the call again before other calls with the same key.
var ErrOtherForm = errors.New("outbox: the next try makes the call in another form")

// ErrNotNeeded is returned by Run if it made no request, because nothing had to be done. The call counts as successful,
// and does not use the budget.
var ErrNotNeeded = errors.New("outbox: the call is not needed")

var errPanic = errors.New("outbox: the call panicked")

// Trouble defines how the outbox reacts to the error of a call.
type Trouble struct {
	Kind  TroubleKind
	After time.Duration // how long to wait; only for Limited
}

// TroubleKind classifies the result of a call.
type TroubleKind int

// Values of TroubleKind.
const (
	Settled TroubleKind = iota // the result is final: the call succeeded, or failed permanently
	Limited                    // retry after Trouble.After, because there were too many requests
	NotMade                    // the request had no effect, and may succeed later
	Unclear                    // the request may have had an effect
)

// verdict decides whether a call is retried.
type verdict int

const (
	decided verdict = iota
	again           // retry as soon as the budget allows
	afterPause
)

// judge decides whether the outbox must retry a call that returned err.
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
