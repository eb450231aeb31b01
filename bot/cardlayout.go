package bot

import (
	"math"
	"slices"
	"unicode/utf8"

	"ductor/bot/render"
)

// Sizes of a card's messages in UTF-16 units.
const (
	hardLimit = 4096 // Telegram's
	softLimit = 4000 // where a message ends that is followed by another
)

// position is a place in a document where a message begins: a segment, and UTF-16 units of its rendering.
type position struct{ segment, offset int }

// slices renders the document in messages that begin at starts; the first start is the document's. Joined,
// they are the whole document, but for whitespace at the seams.
func (d *document) slices(starts []position) []render.Text {
	var out []render.Text
	var cur piece
	next := 1
	for i, s := range d.segments {
		rest := strip{text: s.rendered()}
		for next < len(starts) && starts[next].segment == i {
			cur.add(s.kind, i, rest.take(starts[next].offset-rest.units))
			out = append(out, cur.message())
			cur = piece{}
			next++
		}
		cur.add(s.kind, i, rest.take(math.MaxInt))
	}
	for ; next < len(starts); next++ {
		out = append(out, cur.message())
		cur = piece{}
	}
	return append(out, cur.message())
}

// piece gathers the segments of one message.
type piece struct {
	texts []render.Text
	kind  segmentKind // of the last one
	from  int         // its index
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

func (p *piece) message() render.Text { return asMessage(render.Concat(p.texts...)) }

// asMessage takes off t what Telegram would not keep. t is as long as a message may be.
func asMessage(t render.Text) render.Text {
	parts := render.Split(t, hardLimit)
	if len(parts) == 0 {
		return render.Text{}
	}
	whole := parts[0].Text
	for i, p := range parts[1:] {
		// More addresses than a message can hold: those that go beyond lose their links.
		whole = render.Concat(whole, render.Text{Text: parts[i].Gap + p.Text.Text})
	}
	return whole
}

// strip is a text that is taken off piece by piece, in time proportional to its length.
type strip struct {
	text  render.Text // what is left, with the entities' offsets counted from the beginning
	units int         // taken already
}

// take takes the next n units; a surrogate pair that would be cut is taken whole.
func (s *strip) take(n int) render.Text {
	bytes, units := 0, 0
	if n >= len(s.text.Text) {
		bytes, units = len(s.text.Text), render.Len(s.text.Text)
	}
	for bytes < len(s.text.Text) && units < n {
		r, size := utf8.DecodeRuneInString(s.text.Text[bytes:])
		bytes += size
		units++
		if r > 0xffff {
			units++
		}
	}
	from, to := s.units, s.units+units
	out := render.Text{Text: s.text.Text[:bytes]}
	left := s.text.Entities[:0:0]
	for i, e := range s.text.Entities {
		if e.Offset >= to {
			left = append(left, s.text.Entities[i:]...)
			break
		}
		if e.End() > to {
			left = append(left, e)
		}
		start, end := max(e.Offset, from), min(e.End(), to)
		e.Offset, e.Length = start-from, end-start
		out.Entities = append(out.Entities, e)
	}
	s.text = render.Text{Text: s.text.Text[bytes:], Entities: left}
	s.units = to
	return render.Slice(out, 0, units)
}

// extend adds starts until the rest of the document fits into one message. limit is how long that last
// message may be.
func (d *document) extend(starts []position, limit int) []position {
	for {
		tail := d.tail(starts[len(starts)-1])
		if tail.fits(limit) {
			return starts
		}
		starts = append(starts, tail.cut())
	}
}

// ending is the document from a position on, as far as the next cut needs it.
type ending struct {
	text  render.Text
	more  bool // there is text behind it
	marks []endingMark
}

// endingMark says where in the ending's text a segment begins.
type endingMark struct {
	unit   int
	at     position // of what stands at unit
	whole  bool     // the segment is not to be cut
	growth int      // units that the segment may still grow by
}

func (d *document) tail(from position) *ending {
	e := &ending{}
	var p piece
	units := 0
	for i := from.segment; i < len(d.segments); i++ {
		if units > 2*hardLimit {
			e.more = true
			break
		}
		s := d.segments[i]
		rest := strip{text: s.rendered()}
		if i == from.segment && from.offset > 0 {
			rest.take(from.offset)
		}
		skipped := rest.units
		t := rest.take(3 * hardLimit)
		e.more = e.more || rest.text.Text != ""
		if t.Text == "" {
			continue
		}
		before := len(p.texts)
		p.add(s.kind, i, t)
		for _, added := range p.texts[before : len(p.texts)-1] {
			units += render.Len(added.Text)
		}
		e.marks = append(e.marks, endingMark{
			unit: units, at: position{i, skipped}, whole: s.kind != textSegment, growth: s.growth(d.segments, i),
		})
		units += render.Len(t.Text)
	}
	e.text = render.Concat(p.texts...)
	return e
}

// growth is how many units the segment may still grow by: a tool that runs gets its result, and the first
// that went well may come to stand for those that follow.
func (s *segment) growth(all []*segment, i int) int {
	if s.kind != toolSegment {
		return 0
	}
	first := i == 0 || all[i-1].kind != toolSegment || !all[i-1].tool.ended || all[i-1].tool.failed
	if !s.tool.ended || first {
		return s.tool.slack()
	}
	return 0
}

// growthUpTo is how much what stands before unit may still grow.
func (e *ending) growthUpTo(unit int) int {
	sum := 0
	for _, m := range e.marks {
		if m.unit < unit {
			sum += m.growth
		}
	}
	return sum
}

func (e *ending) fits(limit int) bool {
	n := render.Len(e.text.Text)
	return !e.more && n+e.growthUpTo(n) <= limit
}

// cut is where the message after the next one begins.
func (e *ending) cut() position {
	parts := render.Split(e.text, softLimit)
	at := render.Len(e.text.Text)
	for _, p := range slices.Backward(parts[min(1, len(parts)):]) {
		at -= render.Len(p.Text.Text) + render.Len(p.Gap)
	}
	m := e.markAt(at)
	for m > 0 && (e.marks[m].whole || at+e.growthUpTo(at) > softLimit) {
		// Back to where the segment begins; and further, as long as what may still grow would not fit.
		if at = e.marks[m].unit; at+e.growthUpTo(at) <= softLimit {
			return e.marks[m].at
		}
		m--
	}
	if e.marks[m].whole { // no segment is that long by itself, so there is one behind it
		return position{segment: e.marks[m].at.segment + 1}
	}
	at = min(at, softLimit)
	return position{e.marks[m].at.segment, e.marks[m].at.offset + at - e.marks[m].unit}
}

// markAt is the last mark at or before unit.
func (e *ending) markAt(unit int) int {
	i := len(e.marks) - 1
	for i > 0 && e.marks[i].unit > unit {
		i--
	}
	return i
}
