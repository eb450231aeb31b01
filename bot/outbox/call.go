package outbox

import (
	"context"
	"errors"
	"time"
)

// Chat names a chat and says which budget it has. The zero value means that a call concerns no chat.
type Chat struct {
	ID    int64
	Group bool
}

// ChatOf is the chat with this id. Telegram gives groups and channels ids below zero.
func ChatOf(id int64) Chat { return Chat{ID: id, Group: id < 0} }

// Delivery says what becomes of a call that cannot be made at once.
type Delivery int

// The deliveries.
const (
	// Ensured calls of one key are made in order and tried again until they are decided: after a refusal for the rate,
	// while Telegram is in trouble or out of reach, and after an unknown outcome only if the call is idempotent.
	Ensured Delivery = iota
	// Newest calls replace each other: of those with one key only the last is made. They build their content when
	// they are made. They are tried once, and again only after a refusal for the rate.
	Newest
	// Optional calls are dropped when there is no budget for them, or when another call of the chat comes first.
	Optional
)

// Priority orders the calls of one chat: all calls of a priority go before those of the priorities after it.
type Priority int

// The priorities, the most urgent first.
const (
	// Urgent is what comes within a second, also where the budget is spent: the reply to an abort, the first text of an
	// answer.
	Urgent Priority = iota - 1
	// Awaited is what else a user waits for: replies, approvals, the end of an answer. An edit that takes a button's meaning
	// away is one: a user may press the button until then.
	Awaited
	// Streaming is an edit of an answer that grows. It is paced and leaves the burst to the priorities before it.
	Streaming
	// Aside is what an agent says while it works. It waits for all that a user waits for.
	Aside
	// Preview is what fades unless it is shown again: it leaves as much to the priorities before it, and is not paced.
	Preview
	// Housekeeping tidies up what no user presses: pins, places in the queue, deleted notes. It never has an edit that takes
	// a button's meaning away.
	Housekeeping
	// Sign is a reaction or "typing…".
	Sign
)

// Call is one outgoing call.
type Call struct {
	Chat     Chat
	Delivery Delivery
	Priority Priority
	// Key orders Ensured calls: one in trouble holds up those of its own key only. Of Newest calls with one key the
	// last replaces the others.
	Key string
	// Idempotent calls may be made again when it is not known whether they happened.
	Idempotent bool
	// Delay keeps a call back, so that it may turn out not to be needed. An Optional one is dropped then by any other
	// call of the chat. Drain makes an Ensured one at once. Not for Newest.
	Delay time.Duration
	// Beside makes an Ensured call while others of the chat are made: it may take minutes. Those of one key stay in order.
	Beside bool
	// Run makes the call. It may run several times, never twice at once, and must end with its ctx.
	Run func(ctx context.Context) error
}

// Errors that end a call without the verdict of Run.
var (
	ErrDropped  = errors.New("outbox: dropped, there was no budget")
	ErrReplaced = errors.New("outbox: replaced by a newer call")
	ErrFull     = errors.New("outbox: too many calls wait for this chat")
	ErrClosed   = errors.New("outbox: closed")
)

// ErrOtherForm is what Run returns when Telegram refused the call and the next try makes it otherwise. The call keeps
// its place before the others of its key.
var ErrOtherForm = errors.New("outbox: the next try makes the call in another form")

// ErrNotNeeded is what Run returns when it made no request, because nothing is left to do. The call then costs nothing of
// the budget and ends without an error.
var ErrNotNeeded = errors.New("outbox: the call is not needed")

var errPanic = errors.New("outbox: the call panicked")

// Trouble says what the error of a call means for its next try. After is set for Limited.
type Trouble struct {
	Kind  TroubleKind
	After time.Duration // how long Telegram wants silence
}

// TroubleKind sorts errors by what to do about them.
type TroubleKind int

// The kinds of trouble.
const (
	Settled TroubleKind = iota // it worked, or no try will work
	Limited                    // refused for the rate of calls
	NotMade                    // the call did not happen, and may the next time
	Unclear                    // it may have happened
)

// verdict is what to do after a try.
type verdict int

const (
	decided verdict = iota
	again           // as soon as the budget allows
	afterPause
)

// judge says what the trouble of a call means for it.
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
