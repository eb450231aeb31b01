package card

import (
	"math"
	"slices"
	"unicode/utf8"

	"ductor/bot/render"
)

// shownText is a segment as it was rendered last. It remembers offsets in it, so that cutting a long text
// that grew costs no more than what grew.
type shownText struct {
	text    render.Text
	changed int          // the first UTF-16 unit that may differ from what was cut last; MaxInt for none
	offsets []textOffset // in order; they hold as long as nothing before them changes
}

// textOffset is an offset in a shownText, in three units.
type textOffset struct {
	units  int // UTF-16
	bytes  int
	entity int // no entity before it reaches beyond the offset
}

// set takes over a new rendering.
func (s *shownText) set(t render.Text) {
	if t.Text == s.text.Text && slices.Equal(t.Entities, s.text.Entities) {
		return
	}
	same := s.before(samePrefix(t.Text, s.text.Text)).units
	for i := range max(len(t.Entities), len(s.text.Entities)) {
		if i < len(t.Entities) && i < len(s.text.Entities) && t.Entities[i] == s.text.Entities[i] {
			continue
		}
		for _, es := range [][]render.Entity{t.Entities, s.text.Entities} {
			if i < len(es) {
				same = min(same, es[i].Offset)
			}
		}
		break
	}
	s.text = t
	s.changed = min(s.changed, same)
	s.offsets = slices.DeleteFunc(s.offsets, func(p textOffset) bool { return p.units > same })
}

// samePrefix is how many bytes a and b have in common at their beginning.
func samePrefix(a, b string) int {
	const stride = 256
	n := 0
	for n+stride <= min(len(a), len(b)) && a[n:n+stride] == b[n:n+stride] {
		n += stride
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// before is the last offset that is no more than bytes into the text.
func (s *shownText) before(bytes int) textOffset {
	var p textOffset
	for _, known := range s.offsets {
		if known.bytes <= bytes {
			p = known
		}
	}
	for p.bytes < bytes {
		r, size := utf8.DecodeRuneInString(s.text.Text[p.bytes:])
		if p.bytes+size > bytes {
			break
		}
		p.bytes += size
		p.units += unitsOf(r)
	}
	return p
}

// find is the offset at unit, or behind the character that unit is inside of.
func (s *shownText) find(unit int) textOffset {
	var p textOffset
	i := 0
	for ; i < len(s.offsets) && s.offsets[i].units <= unit; i++ {
		p = s.offsets[i]
	}
	if p.units == unit {
		return p
	}
	p = s.seek(p, unit)
	s.offsets = slices.Insert(s.offsets, i, p)
	return p
}

// seek is find from an earlier offset on.
func (s *shownText) seek(p textOffset, unit int) textOffset {
	for p.bytes < len(s.text.Text) && p.units < unit {
		r, size := utf8.DecodeRuneInString(s.text.Text[p.bytes:])
		p.bytes += size
		p.units += unitsOf(r)
	}
	es := s.text.Entities
	for p.entity < len(es) && es[p.entity].End() <= p.units {
		p.entity++
	}
	return p
}

func (s *shownText) end() textOffset { return textOffset{units: math.MaxInt, bytes: len(s.text.Text)} }

// between is the text from one offset to another; entities that are cut keep what is inside.
func (s *shownText) between(from, to textOffset) render.Text {
	if from.bytes >= to.bytes {
		return render.Text{}
	}
	out := render.Text{Text: s.text.Text[from.bytes:to.bytes]}
	for _, e := range s.text.Entities[from.entity:] {
		if e.Offset >= to.units {
			break
		}
		if e.End() <= from.units {
			continue
		}
		begin, end := max(e.Offset, from.units), min(e.End(), to.units)
		e.Offset, e.Length = begin-from.units, end-begin
		out.Entities = append(out.Entities, e)
	}
	return render.Slice(out, 0, len(out.Text))
}

func unitsOf(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}
