package card

import (
	"context"
	"slices"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/orchestrator"
)

// Telegram does not notify users of edits. So a card announces the end of a long turn with a short separate message.

type ending struct {
	Text   render.Text `json:"text"`
	Silent bool        `json:"silent,omitempty"`
}

// endOf returns the message that announces the end of a turn. It returns nil if the turn needs no announcement. It also
// returns nil if the card has not sent a message yet, because the first message of a card notifies the user anyway.
func (c *Cards) endOf(s *messages, o orchestrator.Outcome) *ending {
	p := c.opts.Lang.Of(s.where().Chat)
	if o.Announce == orchestrator.NotAnnounced || o.Announce == orchestrator.Unwanted || s.opened() == 0 {
		return nil
	}
	line := p.Text("card.done")
	switch {
	case o.Failure != "":
		line = "⚠️ " + render.ShortLine(o.Failure, 300)
	case o.State == orchestrator.TurnInterrupted:
		line = p.Text("card.interrupted")
	}
	fields := c.look().Footer
	if !slices.Contains(fields, FooterTime) {
		fields = append(slices.Clone(fields), FooterTime)
	}
	text := joinFooter(line, footerLine(p, o, fields, func(other orchestrator.ConversationID) string {
		return c.opts.Names.Where(p, s.where(), other)
	}))
	return &ending{Text: c.opts.Scrub.Text(render.Plain(text)), Silent: o.Announce == orchestrator.Muted}
}

// sendEnd sends or edits the message that announces the end of a turn. It does nothing if this message is not in the
// given state.
func (c *Cards) sendEnd(ctx context.Context, s *messages, content contents, state orchestrator.SendState) error {
	s.mu.Lock()
	wanted := content.end != nil && s.lost != chatGone && s.end.State() == state
	n := message.Content{Keyboard: content.buttons, ReplyTo: s.turn.Prompt.Message}
	if n.ReplyTo == 0 && len(s.parts) > 0 {
		n.ReplyTo = s.parts[0].ID()
	}
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	n.Text, n.Silent = content.end.Text, content.end.Silent
	return c.send(ctx, s, s.end, n)
}
