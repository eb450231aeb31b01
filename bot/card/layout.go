package card

import (
	"math"
	"slices"

	"ductor/bot/render"
)

// position is where a message starts in a document: the index of a segment, and an offset in the rendered segment in
// UTF-16 units.
type position struct{ segment, offset int }

// cutDocument contains the messages into which the document was last cut. When the document has grown, most of these
// messages are unchanged and need not be rendered again.
type cutDocument struct {
	starts []position
	parts  []render.Text
}

// slices cuts the document into messages that start at the given positions. Each message ends where the next one
// starts, without white space at its edges. Usually, newest is the start of the last message. If newest is a later
// position, the last message omits the text before newest. slices reuses unchanged messages of its previous call.
func (d *document) slices(starts []position, newest position) []render.Text {
	for _, s := range d.segments {
		d.show(s)
	}
	next := cutDocument{starts: slices.Clone(starts), parts: make([]render.Text, len(starts))}
	for i := range starts {
		if d.unchanged(starts, i) {
			next.parts[i] = d.cut.parts[i]
			continue
		}
		from, to := starts[i], position{segment: len(d.segments)}
		if i+1 < len(starts) {
			to = starts[i+1]
		} else {
			from = newest
		}
		next.parts[i] = d.part(from, to)
	}
	for _, s := range d.segments {
		s.shown.changed = math.MaxInt
	}
	d.cut = next
	return slices.Clone(next.parts)
}

// unchanged reports whether message i still has the content d.cut.parts[i].
func (d *document) unchanged(starts []position, i int) bool {
	if i+1 >= len(starts) || i+1 >= len(d.cut.starts) || starts[i] != d.cut.starts[i] ||
		starts[i+1] != d.cut.starts[i+1] {
		return false
	}
	for n := starts[i].segment; n < starts[i+1].segment; n++ {
		if d.segments[n].shown.changed < math.MaxInt {
			return false
		}
	}
	end := starts[i+1]
	return end.offset == 0 || end.segment < len(d.segments) && d.segments[end.segment].shown.changed >= end.offset
}

func (d *document) part(from, to position) render.Text {
	var p piece
	for n := from.segment; n < len(d.segments) && n <= to.segment; n++ {
		s := d.segments[n]
		begin, end := textOffset{}, s.shown.end()
		if n == from.segment {
			begin = s.shown.atUnit(from.offset)
		}
		if n == to.segment {
			end = s.shown.atUnit(to.offset)
		}
		p.add(s.kind, n, s.shown.between(begin, end))
	}
	return p.message()
}

type piece struct {
	texts []render.Text
	kind  segmentKind
	index int
}

func (p *piece) add(kind segmentKind, segment int, t render.Text) {
	if t.Text == "" {
		return
	}
	if len(p.texts) > 0 && p.index != segment {
		p.texts = append(p.texts, render.Plain(separator(p.kind, kind)))
	}
	p.texts, p.kind, p.index = append(p.texts, t), kind, segment
}

func (p *piece) message() render.Text { return render.AsMessage(render.Concat(p.texts...)) }

// extend appends the starts of further messages, until the last message has at most limit UTF-16 units. It returns
// cut = true if the document needs more than maxMessages messages. If maxMessages is 0, the number is unlimited.
func (d *document) extend(starts []position, limit, maxMessages int) (all []position, cut bool) {
	for {
		tail := d.tail(starts[len(starts)-1])
		if tail.fits(limit) {
			return starts, false
		}
		if maxMessages > 0 && len(starts) >= maxMessages {
			return starts, true
		}
		starts = append(starts, tail.cut())
	}
}

// tailText is the rendered text of the document, beginning with the last message. If this text is long, tailText
// contains only the part that method cut needs.
type tailText struct {
	text  render.Text
	more  bool // true if the document continues after this text
	marks []tailMark
}

type tailMark struct {
	unit   int      // UTF-16 offset at which the segment starts in tailText.text
	at     position // position of the segment in the document
	whole  bool     // true if the segment must not be split
	growth int      // UTF-16 units by which the segment may still grow
}

func (d *document) tail(from position) *tailText {
	e := &tailText{}
	var p piece
	units := 0
	for i := from.segment; i < len(d.segments); i++ {
		if units > 2*render.MessageLimit {
			e.more = true
			break
		}
		s := d.segments[i]
		d.show(s)
		begin := textOffset{}
		if i == from.segment {
			begin = s.shown.atUnit(from.offset)
		}
		end := s.shown.seek(begin, begin.units+3*render.MessageLimit)
		t := s.shown.between(begin, end)
		e.more = e.more || end.bytes < len(s.shown.text.Text)
		if t.Text == "" {
			continue
		}
		before := len(p.texts)
		p.add(s.kind, i, t)
		for _, added := range p.texts[before : len(p.texts)-1] {
			units += render.Len(added.Text)
		}
		e.marks = append(e.marks, tailMark{
			unit: units, at: position{i, begin.units}, whole: s.kind != textSegment, growth: s.growth(d.segments, i),
		})
		units += render.Len(t.Text)
	}
	e.text = render.Concat(p.texts...)
	return e
}

// growth returns by how many UTF-16 units segment i may still grow. There are two reasons for growth: the line of a
// running tool will also show the tool's result, and the first successful line of consecutive tool lines may become a
// summary of these lines.
func (s *segment) growth(all []*segment, i int) int {
	switch s.kind {
	case planSegment:
		return s.plan.slack()
	case toolSegment:
	default:
		return 0
	}
	first := i == 0 || all[i-1].kind != toolSegment || all[i-1].tool.state != toolSucceeded
	if !s.tool.ended() || first {
		return s.tool.slack()
	}
	return 0
}

// growthUpTo returns by how many UTF-16 units the text before an offset may still grow. unit is the offset.
func (e *tailText) growthUpTo(unit int) int {
	sum := 0
	for _, m := range e.marks {
		if m.unit < unit {
			sum += m.growth
		}
	}
	return sum
}

func (e *tailText) fits(limit int) bool {
	n := render.Len(e.text.Text)
	return !e.more && n+e.growthUpTo(n) <= limit && render.Carried(e.text)
}

// cut returns the position at which the next message must start. It is called if the text does not fit into one
// message.
func (e *tailText) cut() position {
	parts := render.Split(e.text, render.FullMessage)
	at, full := render.Len(e.text.Text), render.FullMessage
	for i, p := range slices.Backward(parts) {
		if i > 0 {
			at -= render.Len(p.Text.Text) + render.Len(p.Gap)
		} else { // white space at the start of the text is not sent, so it does not count
			full += at - render.Len(p.Text.Text) - render.Len(p.Gap)
		}
	}
	m := e.markAt(at)
	for m > 0 && (e.marks[m].whole || at+e.growthUpTo(at) > render.FullMessage) {
		// Let the next message start with segment m. If the text before this segment could still grow beyond one
		// message, try the segment before it.
		if at = e.marks[m].unit; at+e.growthUpTo(at) <= render.FullMessage {
			return e.marks[m].at
		}
		m--
	}
	if e.marks[m].whole { // the message consists of this first segment, which always fits into a message
		return position{segment: e.marks[m].at.segment + 1}
	}
	at = min(at, full)
	return position{e.marks[m].at.segment, e.marks[m].at.offset + at - e.marks[m].unit}
}

// markAt returns the index of the last mark at or before the given UTF-16 offset.
func (e *tailText) markAt(unit int) int {
	i := len(e.marks) - 1
	for i > 0 && e.marks[i].unit > unit {
		i--
	}
	return i
}
