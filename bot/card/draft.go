package card

import (
	"context"
	"hash/fnv"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// In a private chat, a card can show its last message as a draft while the message grows. A draft is a preview that
// Telegram animates. Telegram adds a Stop button and removes the draft after 30 s, so the bot repeats it. Telegram also
// removes it when the bot sends a message, until the bot sends the draft again. The card sends the real message when
// the turn ends or waits for a user. See https://core.telegram.org/bots/api#sendmessagedraft.

// Draft shows text as the draft with the given ID. The next call with the same ID replaces the draft.
type Draft func(ctx context.Context, to orchestrator.ConversationID, id int64, text render.Text) error

const (
	draftInterval = 250 * time.Millisecond
	// draftAgain is how often an unchanged draft is repeated. Telegram shows a draft for 30 s.
	draftAgain = 20 * time.Second
)

// draft stores which text the chat shows as a draft, and since when.
type draft struct {
	text render.Text
	at   time.Time // when the draft was sent; zero if the chat shows none
}

// draftID returns the ID of the draft of one message of a turn. It must not be zero. Telegram animates the change if
// two successive drafts have the same ID.
func draftID(turn cli.TurnID, part int) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn))
	return int64(h.Sum32()>>8)<<6 | int64(part&31) | 32
}
