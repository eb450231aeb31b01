package card

import (
	"math"
	"slices"
	"unicode/utf8"

	"ductor/bot/render"
)

// shownText is the rendered text of a segment. It caches the offsets at which the text was cut, so that atUnit need not
// search the whole text again.
type shownText struct {
	text    render.Text
	changed int          // first UTF-16 unit that may have changed since the last cut; math.MaxInt if nothing changed
	offsets []textOffset // sorted; only offsets in the unchanged part of the text
}

type textOffset struct {
	units  int // number of UTF-16 units before the offset
	bytes  int
	entity int // index of the first entity (formatting) that ends after the offset
}

// set replaces the text, and records the first difference in s.changed.
func (s *shownText) set(t render.Text) {
	if t.Text == s.text.Text && slices.Equal(t.Entities, s.text.Entities) {
		return
	}
	same := s.atByte(samePrefix(t.Text, s.text.Text)).units
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

// samePrefix returns the length of the common prefix of a and b in bytes.
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

// atByte returns the offset at a byte position. If the position is inside a character, atByte returns the start of the
// character.
func (s *shownText) atByte(bytes int) textOffset {
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

// atUnit returns the offset at a UTF-16 unit. If the unit is inside a character, atUnit returns the end of the
// character.
func (s *shownText) atUnit(unit int) textOffset {
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

// seek is like atUnit, but starts its search at the given offset, which must not be after unit.
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

// between returns the text between two offsets, with its formatting.
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
