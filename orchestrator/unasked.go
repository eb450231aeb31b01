package orchestrator

import (
	"fmt"

	"ductor/cli"
)

// Unasked shows what an agent said between two turns of ours, such as when a background command ended.
func (o *Orchestrator) Unasked(key cli.Conversation, r cli.Result) {
	id, err := ParseKey(key)
	if err != nil || r.Text == "" || !o.open() {
		return
	}
	go func() {
		defer o.wg.Done()
		if err := o.opts.Chat.Notice(o.life, id, r.Text); err != nil {
			o.log.Error("show what the agent said unasked", "chat", id.Chat, "err", err)
		}
	}()
}

// ParseKey is the inverse of ConversationID.Key.
func ParseKey(key cli.Conversation) (ConversationID, error) {
	var id ConversationID
	if n, err := fmt.Sscanf(string(key), "%d/%d", &id.Chat, &id.Topic); n != 2 || err != nil {
		return ConversationID{}, fmt.Errorf("parse conversation key %q: %w", key, err)
	}
	return id, nil
}
