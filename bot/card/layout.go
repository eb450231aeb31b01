package card

import (
	"math"
	"slices"

	"ductor/bot/render"
)

// position is the place in a document where a message starts: a segment, and an offset in its rendering in UTF-16
// units.
type position struct{ segment, offset int }

// cutDocument is a document cut into messages. It makes the next cut cheap after the document has grown.
type cutDocument struct {
	starts []position
	parts  []render.Text
}

// slices cuts the document into messages. Each message except the last extends from its start to the next start. The
// last message extends from newest to the end of the document. slices removes white space at the cuts. It reuses
// messages of the previous call whose content has not changed.
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

// unchanged reports whether part i is the same as at the previous cut.
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

// part renders the message between two positions.
func (d *document) part(from, to position) render.Text {
	var p piece
	for n := from.segment; n < len(d.segments) && n <= to.segment; n++ {
		s := d.segments[n]
		begin, end := textOffset{}, s.shown.end()
		if n == from.segment {
			begin = s.shown.find(from.offset)
		}
		if n == to.segment {
			end = s.shown.find(to.offset)
		}
		p.add(s.kind, n, s.shown.between(begin, end))
	}
	return p.message()
}

// piece collects the segments of one message.
type piece struct {
	texts []render.Text
	kind  segmentKind // kind of the last segment
	from  int         // index of the last segment
}

func (p *piece) add(kind segmentKind, segment int, t render.Text) {
	if t.Text == "" {
		return
	}
	if len(p.texts) > 0 && p.from != segment {
		p.texts = append(p.texts, render.Plain(separator(p.kind, kind)))
	}
	p.texts, p.kind, p.from = append(p.texts, t), kind, segment
}

func (p *piece) message() render.Text { return render.AsMessage(render.Concat(p.texts...)) }

// extend adds starts until the rest of the document fits into one message, or until the number of messages reaches
// most. If most is 0, their number has no limit. limit is the maximum size of the last message. cut reports that the
// rest does not fit.
func (d *document) extend(starts []position, limit, most int) (all []position, cut bool) {
	for {
		tail := d.tail(starts[len(starts)-1])
		if tail.fits(limit) {
			return starts, false
		}
		if most > 0 && len(starts) >= most {
			return starts, true
		}
		starts = append(starts, tail.cut())
	}
}

// tailText is the document from a position on, as far as the next cut needs it.
type tailText struct {
	text  render.Text
	more  bool // more text follows
	marks []tailMark
}

// tailMark locates the start of a segment in a tailText.
type tailMark struct {
	unit   int
	at     position // position in the document for unit
	whole  bool     // do not cut the segment
	growth int      // units by which the segment may still grow
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
			begin = s.shown.find(from.offset)
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

// growth returns by how many units the segment may still grow. A running tool's line grows by its result. In a row of
// tools, the first successful line may grow into a summary of the lines after it.
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

// growthUpTo returns by how many units the text before unit may still grow.
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

// cut returns the start of the message after the next message.
func (e *tailText) cut() position {
	parts := render.Split(e.text, render.FullMessage)
	at, full := render.Len(e.text.Text), render.FullMessage
	for i, p := range slices.Backward(parts) {
		if i > 0 {
			at -= render.Len(p.Text.Text) + render.Len(p.Gap)
		} else { // the message starts after the preceding white space
			full += at - render.Len(p.Text.Text) - render.Len(p.Gap)
		}
	}
	m := e.markAt(at)
	for m > 0 && (e.marks[m].whole || at+e.growthUpTo(at) > render.FullMessage) {
		// Move back to the start of the segment, or further while the text could outgrow the message.
		if at = e.marks[m].unit; at+e.growthUpTo(at) <= render.FullMessage {
			return e.marks[m].at
		}
		m--
	}
	if e.marks[m].whole { // the segment fits, because every segment is shorter than a message
		return position{segment: e.marks[m].at.segment + 1}
	}
	at = min(at, full)
	return position{e.marks[m].at.segment, e.marks[m].at.offset + at - e.marks[m].unit}
}

// markAt returns the last mark at or before unit.
func (e *tailText) markAt(unit int) int {
	i := len(e.marks) - 1
	for i > 0 && e.marks[i].unit > unit {
		i--
	}
	return i
}
