package card

import (
	"math"
	"slices"

	"ductor/bot/render"
)

// position is where a message starts in a document: the index of a segment, and an offset in the rendered segment in
// UTF-16 units.
type position struct{ segment, offset int }

// cutDocument is the result of the last cut into messages. It makes the next cut cheaper: most messages stay the same.
type cutDocument struct {
	starts []position
	parts  []render.Text
}

// slices cuts the document into messages at the given starts. Each message ends where the next one starts, without
// white space at its edges. The last message does not begin at its own start but at newest, and so may omit text in
// between. slices reuses messages of the previous call that have not changed.
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

// unchanged reports whether message i has the same content as at the previous cut.
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

// part renders the document between two positions.
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

// piece concatenates segments into one message.
type piece struct {
	texts []render.Text
	kind  segmentKind // kind of the last added segment
	from  int         // index of the last added segment
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

// extend starts more messages until the rest of the document fits into the last one. limit is the maximum size of that
// last message. extend stops at most messages and then returns cut = true if the rest does not fit. If most is 0, the
// number of messages is unlimited.
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

// tailText is the rendered document from some position on. It contains only as much text as the next cut needs.
type tailText struct {
	text  render.Text
	more  bool // the document continues after text
	marks []tailMark
}

// tailMark is the start of a segment in a tailText.
type tailMark struct {
	unit   int
	at     position // position in the document that corresponds to unit
	whole  bool     // the segment must not be split
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

// growth returns by how many UTF-16 units segment i may still grow. The line of a running tool later shows its result
// too. The first successful line in a row of tools may later become a summary of the lines below it.
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

// growthUpTo returns by how many UTF-16 units the text before unit may still grow.
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

// cut returns where the text no longer fits into one message, so that another message must start.
func (e *tailText) cut() position {
	parts := render.Split(e.text, render.FullMessage)
	at, full := render.Len(e.text.Text), render.FullMessage
	for i, p := range slices.Backward(parts) {
		if i > 0 {
			at -= render.Len(p.Text.Text) + render.Len(p.Gap)
		} else { // the message starts after the white space at the start of the text
			full += at - render.Len(p.Text.Text) - render.Len(p.Gap)
		}
	}
	m := e.markAt(at)
	for m > 0 && (e.marks[m].whole || at+e.growthUpTo(at) > render.FullMessage) {
		// Cut before the segment instead, or even earlier if the text before it could still grow beyond one message.
		if at = e.marks[m].unit; at+e.growthUpTo(at) <= render.FullMessage {
			return e.marks[m].at
		}
		m--
	}
	if e.marks[m].whole { // the message can hold at least one segment, so cut after it
		return position{segment: e.marks[m].at.segment + 1}
	}
	at = min(at, full)
	return position{e.marks[m].at.segment, e.marks[m].at.offset + at - e.marks[m].unit}
}

// markAt returns the index of the last mark at or before unit.
func (e *tailText) markAt(unit int) int {
	i := len(e.marks) - 1
	for i > 0 && e.marks[i].unit > unit {
		i--
	}
	return i
}
