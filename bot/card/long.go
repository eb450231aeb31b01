package card

import (
	"context"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/orchestrator"
)

// What becomes of an answer that is longer than the messages it may have: they show its beginning and its newest
// part, and a file has the whole of it.

// tailBytes is how much of the end of a long answer the last message shows; it is less than a message holds, so
// that there is room for what stands above and below.
const tailBytes = 3200

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
	// This stands above the newest part, before which something is left out.
	follows := render.Styled(render.Italic, d.lang.Text("card.file-follows"))
	texts[len(texts)-1] = render.Concat(follows, render.Plain("\n\n"), texts[len(texts)-1])
	return starts, texts, true
}

// newest is where the last tailBytes of the document begin, or the line after that.
func (d *document) newest() position {
	left := tailBytes
	for i := len(d.segments) - 1; i >= 0; i-- {
		s := d.segments[i]
		d.show(s)
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
	if !cut && o.Short == "" {
		return ""
	}
	return c.opts.Scrub.String(o.Text)
}

// deliverFile sends the file of a card once. It returns when the chat has it, or when it is known that it cannot.
func (c *Cards) deliverFile(ctx context.Context, s *messages, content contents) error {
	s.mu.Lock()
	wanted := content.file != "" && s.lost != chatGone && s.file.State() == orchestrator.Pending
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	return c.send(ctx, s, s.file, message.Content{Files: []message.File{{Name: "answer.md", Content: content.file}}, Life: message.Stays})
}
