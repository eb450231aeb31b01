package render

import (
	"strings"
	"unicode/utf8"
)

// Part is one message of a split text.
type Part struct {
	Text
	Gap string // whitespace that was dropped after the part
}

// MaxEntities is the number of entities that Telegram keeps in one message. Split never exceeds it.
const MaxEntities = 100

// maxAttributes limits the addresses and languages in one part, in bytes. So a request stays below Telegram's 32768
// bytes, even with the longest text and the most entities.
const maxAttributes = 8 << 10

// Split cuts t into parts of at most limit UTF-16 units (at least 16). Each part is a valid message: it is not empty,
// and starts and ends with a visible character, except for the indentation of code.
//
// Split cuts at the end of a paragraph if the part is then long enough. Otherwise it cuts at a line, a sentence or a
// word. It cuts inside a word only if the word fills almost a whole part. If possible, it never cuts inside a
// displayed character. Entities that are cut continue in the next part. Split also cuts where a message cannot hold
// more entities; see Carried.
//
// The texts and gaps of all parts, joined, are t's text from its first visible character on. Appending to t changes
// only the last part.
func Split(t Text, limit int) (parts []Part) {
	s := splitter{cursor: cursor{text: t.Text}, entities: t.Entities, limit: max(limit, 16)}
	s.skip()
	for s.bytes < len(s.text) {
		text := s.next()
		parts = append(parts, Part{Text: text, Gap: s.skip()})
	}
	return parts
}

// splitter moves through a text. entities contains only entities that end after the cursor.
type splitter struct {
	cursor
	entities []Entity
	limit    int
	visible  int // units from the cursor to the first visible character; less than limit
}

// skip moves over whitespace and returns it. It stops before the indentation of a line of code, unless the
// indentation is longer than half a message.
func (s *splitter) skip() string {
	rest := s.text[s.bytes:]
	n := strings.IndexFunc(rest, func(r rune) bool { return !blank(r) })
	if n < 0 {
		s.bytes = len(s.text)
		return rest
	}
	at := s.cursor
	at.bytes, at.units = s.bytes+n, s.units+Len(rest[:n])
	keep := strings.LastIndexByte(rest[:n], '\n') + 1
	indent := s.cursor
	indent.bytes, indent.units = s.bytes+keep, s.units+Len(rest[:keep])
	s.visible = 0
	s.pass(at.units)
	if e, ok := s.codeAt(at.units); ok && at.units-max(indent.units, e.Offset) < s.limit/2 {
		if e.Offset > indent.units {
			indent = s.cursor
			indent.take(e.Offset)
		}
		s.visible = at.units - indent.units
		at = indent
	}
	from := s.bytes
	s.cursor = at
	return s.text[from:at.bytes]
}

// pass drops the entities that end at or before unit.
func (s *splitter) pass(unit int) {
	for len(s.entities) > 0 && s.entities[0].End() <= unit {
		s.entities = s.entities[1:]
	}
}

// codeAt returns the code entity that covers unit, which is at or after the cursor.
func (s *splitter) codeAt(unit int) (Entity, bool) {
	for _, e := range s.entities {
		if e.Offset > unit {
			break
		}
		if e.Kind.raw() && e.End() > unit {
			return e, true
		}
	}
	return Entity{}, false
}

// next removes a part from the front and returns it.
func (s *splitter) next() Text {
	window := s.window(s.limit)
	if limit := s.budget(); limit < Len(window) {
		window = s.window(limit)
	}
	end := s.bytes + len(window)
	if !IsBlank(s.text[end:]) {
		end = s.bytes + s.cut(window)
	}
	body := strings.TrimRightFunc(s.text[s.bytes:end], blank)
	start := s.units
	s.units += Len(body)
	s.bytes += len(body)
	return Text{Text: body, Entities: clip(s.entities, body, start, s.units)}
}

// window returns the text of the next units from the cursor on. It never ends inside a surrogate pair.
func (s *splitter) window(units int) string {
	w := s.cursor
	for w.bytes < len(w.text) {
		r, size := utf8.DecodeRuneInString(w.text[w.bytes:])
		if w.units+runeUnits(r) > s.units+units {
			break
		}
		w.bytes += size
		w.units += runeUnits(r)
	}
	return s.text[s.bytes:w.bytes]
}

// budget returns the maximum length of the next part, so that a message can hold its entities.
func (s *splitter) budget() int {
	var l load
	for _, e := range s.entities {
		if e.Offset >= s.units+s.limit {
			break
		}
		if !l.add(e) && e.Offset > s.units+s.visible {
			return e.Offset - s.units
		}
	}
	return s.limit
}

// load is the number and size of a message's entities.
type load struct{ count, bytes int }

// add adds e and reports whether a message can hold all entities added so far.
func (l *load) add(e Entity) bool {
	l.count, l.bytes = l.count+1, l.bytes+len(e.URL)+len(e.Language)
	return l.count <= MaxEntities && l.bytes <= maxAttributes
}

// Carried reports whether one message can hold all entities of t. Telegram drops entities beyond MaxEntities, and a
// request has limited room for addresses.
func Carried(t Text) bool {
	var l load
	for _, e := range t.Entities {
		if !l.add(e) {
			return false
		}
	}
	return true
}
