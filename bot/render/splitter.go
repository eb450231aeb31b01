package render

import (
	"slices"
	"strings"
)

// Splitter splits a text again and again while it grows, each time with the result of Split, and looks only
// at what changed since the last time. For one goroutine. Limit must not change once it was used.
type Splitter struct {
	Limit int // UTF-16 units of a part at most; less than 16 means 16

	last   Text
	parts  []Part
	starts []start // of parts
}

// start is a splitter's state where a part begins.
type start struct {
	cursor
	visible int
}

// Split gives the parts of t; see the function Split. The result is the caller's to keep but not to change.
func (p *Splitter) Split(t Text) []Part {
	s := splitter{cursor: cursor{text: t.Text}, entities: t.Entities, limit: max(p.Limit, 16)}
	n := p.unchanged(t, s.limit)
	if n > 0 {
		s.bytes, s.units, s.visible = p.starts[n].bytes, p.starts[n].units, p.starts[n].visible
		s.pass(s.units)
	} else {
		s.skip()
	}
	p.last, p.parts, p.starts = t, slices.Clone(p.parts[:n]), p.starts[:n]
	for s.bytes < len(s.text) {
		p.starts = append(p.starts, start{cursor: cursor{bytes: s.bytes, units: s.units}, visible: s.visible})
		text := s.next()
		p.parts = append(p.parts, Part{Text: text, Gap: s.skip()})
	}
	return p.parts
}

// unchanged is how many of the parts stand in t too: those from whose start to a whole part behind their
// end nothing differs from the last text, and t goes on visibly behind it.
func (p *Splitter) unchanged(t Text, limit int) int {
	same := p.sameUnits(t)
	n := 0
	for n+1 < len(p.starts) && p.starts[n+1].units+limit+2 <= same {
		n++
	}
	return n
}

// sameUnits is up to which unit t and the last text are the same, at least, less what is blank at the end.
func (p *Splitter) sameUnits(t Text) int {
	bytes := commonPrefix(p.last.Text, strings.TrimRightFunc(t.Text, blank))
	i := len(p.starts) - 1
	for i >= 0 && p.starts[i].bytes > bytes {
		i--
	}
	if i < 0 {
		return 0
	}
	same := p.starts[i].units + Len(t.Text[p.starts[i].bytes:bytes])
	old, now := p.last.Entities, t.Entities
	k := 0
	for k < len(old) && k < len(now) && old[k] == now[k] {
		k++
	}
	if k < len(old) {
		same = min(same, old[k].Offset)
	}
	if k < len(now) {
		same = min(same, now[k].Offset)
	}
	return same
}

// commonPrefix is the number of bytes a and b begin with in common.
func commonPrefix(a, b string) int {
	const step = 1024
	n, i := min(len(a), len(b)), 0
	for i+step <= n && a[i:i+step] == b[i:i+step] {
		i += step
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
