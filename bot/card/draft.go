package card

import (
	"context"
	"hash/fnv"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// In a private chat, a card can show its newest message as a draft while the message grows. A draft is a preview that
// Telegram animates, with its own Stop button. It fades unless it is sent again. Any real message removes it, and the
// next draft brings it back. The real message is sent at the end, or when the turn waits for its user. See
// https://core.telegram.org/bots/api#sendmessagedraft.

// Draft shows text as the draft with a number. The call is idempotent.
type Draft func(ctx context.Context, to orchestrator.ConversationID, id int64, text render.Text) error

const (
	draftInterval = 250 * time.Millisecond
	// draftAgain is the interval for sending an unchanged draft again. Telegram shows a draft for 30 s.
	draftAgain = 20 * time.Second
)

// draft is the draft that the chat shows.
type draft struct {
	text render.Text
	at   time.Time // when it was sent; zero for no draft
}

// draftID returns the number of a message's draft. Telegram animates changes of one number, and rejects zero.
func draftID(turn cli.TurnID, part int) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn))
	return int64(h.Sum32()>>8)<<6 | int64(part&31) | 32
}
