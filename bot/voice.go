package bot

import (
	"context"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// voice is what the inbound side says besides letters: signs that may be missed. All of it passes the outbox.
type voice interface {
	// react puts an emoji on a person's message, or nothing when the chat is busy. It does not wait.
	react(id orchestrator.ConversationID, message int, emoji string)
	// answer ends the waiting of a pressed button, with a short text or none, and waits for it.
	answer(ctx context.Context, query, text string)
	// edit changes a message of ours; of several edits the newest counts. It does not wait.
	edit(id orchestrator.ConversationID, message int, text string, k Keyboard)
	// unbutton takes the buttons off a message of ours. It does not wait.
	unbutton(id orchestrator.ConversationID, message int)
}

// mail makes letters and sees to it that stored ones leave.
type mail interface {
	// compose makes a letter that is to be stored with what caused it. replyTo is 0 for none.
	compose(id orchestrator.ConversationID, text string, k Keyboard, replyTo int) (orchestrator.Letter, error)
	// Wake says that letters were stored.
	Wake()
}

// plainText is text without markup.
func plainText(s string) render.Text { return render.Text{Text: s} }
