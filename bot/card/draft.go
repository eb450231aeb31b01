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
// Telegram animates, with its own Stop button. It disappears unless the bot repeats it. A real message also removes
// the draft, and the next draft restores it. The card sends the real message at the end, or when the turn waits for a
// user. See https://core.telegram.org/bots/api#sendmessagedraft.

// Draft shows text as a draft. id identifies the draft. The call is idempotent.
type Draft func(ctx context.Context, to orchestrator.ConversationID, id int64, text render.Text) error

const (
	draftInterval = 250 * time.Millisecond
	// draftAgain is the interval at which an unchanged draft is repeated. Telegram shows a draft for 30 s.
	draftAgain = 20 * time.Second
)

// draft is the draft that the chat shows.
type draft struct {
	text render.Text
	at   time.Time // when the draft was sent; zero for no draft
}

// draftID returns the id of a message's draft. Telegram animates changes of drafts with the same id, and rejects
// zero.
func draftID(turn cli.TurnID, part int) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn))
	return int64(h.Sum32()>>8)<<6 | int64(part&31) | 32
}
