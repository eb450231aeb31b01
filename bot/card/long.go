package card

import (
	"context"
	"errors"
	"strings"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// What becomes of an answer that is longer than the messages it may have: they show its beginning and its newest
// part, and a file has the whole of it.

// skipped stands above the newest part where something is left out before it.
var skipped = render.Styled(render.Italic, "⋯ the whole answer comes as a file ⋯")

// tailBytes is how much of the end of a long answer the last message shows; it is less than a message holds, so
// that there is room for what stands above and below.
const tailBytes = 3200

// filePart is the number under which the file of a card is journaled, beyond any card's parts.
const filePart = noticePart + 1

// layout cuts the document into messages, the first of which begin at begun. limit is how long the last may be.
// Where most messages do not hold the document, cut is true and the last one shows its newest part.
func (d *document) layout(begun []position, limit, most int) (starts []position, texts []render.Text, cut bool) {
	if most > 0 {
		most = max(most, len(begun))
	}
	starts, cut = d.extend(begun, limit, most)
	last := starts[len(starts)-1]
	if !cut {
		return starts, d.slices(starts, last), false
	}
	newest := d.newest()
	if !d.within(last, newest) {
		newest = last
	}
	texts = d.slices(starts, newest)
	texts[len(texts)-1] = render.Concat(skipped, render.Plain("\n\n"), texts[len(texts)-1])
	return starts, texts, true
}

// newest is where the last tailBytes of the document begin, or the line after that.
func (d *document) newest() position {
	left := tailBytes
	for i := len(d.segments) - 1; i >= 0; i-- {
		s := d.segments[i]
		s.shown.set(d.scrub.Text(s.rendered()))
		text := s.shown.text.Text
		if len(text) <= left {
			left -= len(text)
			continue
		}
		if s.kind != textSegment {
			return position{segment: i + 1}
		}
		at := len(text) - left
		if line := strings.IndexByte(text[at:], '\n'); line >= 0 && line < left/2 {
			at += line + 1
		}
		return position{i, s.shown.before(at).units}
	}
	return position{}
}

// fileOf is what the file of a card holds; empty where its messages leave nothing out.
func (c *Cards) fileOf(o orchestrator.Outcome, cut bool) string {
	if !cut {
		return ""
	}
	return c.opts.Scrub.String(o.Text)
}

// deliverFile sends the file of a card once. It returns when the chat has it, or when it is known that it cannot.
func (c *Cards) deliverFile(ctx context.Context, s *messages, content contents) error {
	wanted := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return content.file != "" && !s.gone && (s.file == "" || s.file == orchestrator.Pending)
	}
	if !wanted() {
		return nil
	}
	return c.out(ctx, s, outbox.Awaited, func(ctx context.Context) error {
		if !wanted() {
			return nil
		}
		return s.sendFile(ctx, content.file)
	})
}

// sendFile settles how it went; it returns an error if the call may be made again.
func (s *messages) sendFile(ctx context.Context, text string) error {
	if err := s.save(ctx, filePart, orchestrator.Sending, 0); err != nil {
		return err
	}
	id, err := s.client.SendDocument(ctx, tgapi.Document{To: s.where(), Name: "answer.md", Content: strings.NewReader(text)})
	state := orchestrator.Failed
	switch tgapi.FaultOf(err).Kind {
	case tgapi.NoFault:
		state = orchestrator.Sent
	case tgapi.UnknownFault:
		state = orchestrator.Unknown
	case tgapi.RateLimited, tgapi.ServerFault, tgapi.NotSent, tgapi.Cancelled, tgapi.Unauthorized, tgapi.Conflict:
		return errors.Join(err, s.saved(ctx, filePart, orchestrator.Pending, 0))
	default:
		s.log.Error("Telegram refused the file of an answer", "turn", s.turn, "err", err)
	}
	s.set(func() { s.file = state })
	return s.saved(ctx, filePart, state, id)
}

// forgetFile makes the file be sent anew where it is not known to be in the chat.
func (s *messages) forgetFile(ctx context.Context) error {
	if s.file != orchestrator.Unknown {
		return nil
	}
	if err := s.save(ctx, filePart, orchestrator.Pending, 0); err != nil {
		return err
	}
	s.file = orchestrator.Pending
	return nil
}
