package card

import (
	"context"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/orchestrator"
)

// A very long answer gets a limited number of messages. They show only the beginning and the end of the answer, and a
// file contains the whole answer.

// tailBytes is how much of the end of a very long answer the last message shows. It leaves space in this message for
// the lines above and below the answer.
const tailBytes = 3200

// layout cuts the document into at most maxMessages messages, or into any number if maxMessages is 0. sentStarts are
// the positions at which the already sent messages start. The last message has at most limit UTF-16 units. If the
// document does not fit, layout returns cut = true, and the last message shows the end of the document.
func (d *document) layout(sentStarts []position, limit, maxMessages int) (
	starts []position, texts []render.Text, cut bool) {
	if maxMessages > 0 {
		maxMessages = max(maxMessages, len(sentStarts))
	}
	starts, cut = d.extend(sentStarts, limit, maxMessages)
	last := starts[len(starts)-1]
	if !cut {
		return starts, d.slices(starts, last), false
	}
	newest := d.newest()
	if !d.within(last, newest) {
		newest = last
	}
	texts = d.slices(starts, newest)
	// Announce the file in a line above the end of the answer.
	follows := render.Styled(render.Italic, d.lang.Text("card.file-follows"))
	texts[len(texts)-1] = render.Concat(follows, render.Plain("\n\n"), texts[len(texts)-1])
	return starts, texts, true
}

// newest returns the position at which the last tailBytes of the document start. If a line starts soon after this
// position, newest returns the start of the line.
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
		return position{i, s.shown.atByte(at).units}
	}
	return position{}
}

// fileOf returns the content of the file with the whole answer, or "" if the messages show all of it.
func (c *Cards) fileOf(o orchestrator.Outcome, cut bool) string {
	if !cut && o.Short == "" {
		return ""
	}
	return c.opts.Scrub.String(o.Text)
}

// deliverFile sends the file with the whole answer, if there is one. It returns when Telegram has accepted or rejected
// the file.
func (c *Cards) deliverFile(ctx context.Context, s *messages, content contents) error {
	s.mu.Lock()
	wanted := content.file != "" && s.lost != chatGone && s.file.State() == orchestrator.Pending
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	return c.send(ctx, s, s.file, message.Content{
		Files: []message.File{{Name: "answer.md", Content: content.file}}, Lifecycle: message.Keep,
	})
}
