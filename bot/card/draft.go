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
// Telegram animates. It has a Stop button. Telegram removes a draft after 30 s, and also when the bot sends a message.
// In both cases, the bot sends the draft again. When the turn ends or waits for a user, the card sends the real
// message. See https://core.telegram.org/bots/api#sendmessagedraft.

// Draft shows text as the draft with the given ID. The next call with the same ID replaces the draft.
type Draft func(ctx context.Context, to orchestrator.ConversationID, id int64, text render.Text) error

const (
	draftInterval = 250 * time.Millisecond
	// draftAgain is the interval at which an unchanged draft is sent again. It is shorter than the 30 s for which
	// Telegram shows a draft.
	draftAgain = 20 * time.Second
)

type draft struct {
	part int
	text render.Text
	at   time.Time // when the draft was sent; zero if the chat shows none
}

// draftID returns the ID of the draft for one message of a turn. The ID is never zero. It is the same for successive
// drafts of a message, because Telegram then animates the change between them.
func draftID(turn cli.TurnID, part int) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn))
	return int64(h.Sum32()>>8)<<6 | int64(part&31) | 32
}
