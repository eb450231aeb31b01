package card

import (
	"context"
	"hash/fnv"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// A card can show its newest message as a draft while that grows: a preview that Telegram animates, with a Stop button of
// its own. It is in private chats only, it fades when it is not sent again, and any real message takes it away, which the
// next one brings back. The message itself comes at the end, or when the turn waits for its user.
// See https://core.telegram.org/bots/api#sendmessagedraft.

// Draft shows text as the draft with a number. Idempotent.
type Draft func(ctx context.Context, to orchestrator.ConversationID, id int64, text render.Text) error

const (
	draftInterval = 250 * time.Millisecond
	// draftAgain is when a draft is sent again that has not changed: Telegram shows one for 30 s.
	draftAgain = 20 * time.Second
)

// draft is the draft that the chat shows.
type draft struct {
	text render.Text
	at   time.Time // when it was sent; zero for none
}

// draftID numbers the draft of a message: Telegram animates what one number shows, and takes no zero.
func draftID(turn cli.TurnID, part int) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn))
	return int64(h.Sum32()>>8)<<6 | int64(part&31) | 32
}
