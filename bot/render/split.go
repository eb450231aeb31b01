package render

import (
	"strings"
	"unicode/utf8"
)

// Part is one message of a split text.
type Part struct {
	Text
	Gap string // white space between this part and the next; neither part contains it
}

// MaxEntities is the maximum number of entities in one message. Telegram drops all others.
const MaxEntities = 100

// maxAttributes is the maximum total length of addresses and languages in one part, in bytes. With this limit, no
// request exceeds Telegram's limit of 32768 bytes.
const maxAttributes = 8 << 10

// Split cuts t into parts of at most limit UTF-16 units. A limit below 16 counts as 16. Each part is a valid message:
// it is not empty, and it has no white space at its edges, except for the indentation of code. Part.Gap contains the
// white space that Split removes between two parts.
//
// Split cuts at the end of a paragraph, unless the part would be too short. Otherwise it cuts at the end of a line, a
// sentence or a word. It cuts inside a word only if the word is almost as long as a whole part. It avoids cutting
// inside a visible character. A cut entity continues in the next part. If one message cannot hold all entities of a
// part, Split makes the part shorter; see Carried.
//
// Joined together, all parts and gaps are the text of t without white space at its start. If text is appended to t,
// only the last part changes.
func Split(t Text, limit int) (parts []Part) {
	s := splitter{cursor: cursor{text: t.Text}, entities: t.Entities, limit: max(limit, 16)}
	s.skip()
	for s.bytes < len(s.text) {
		text := s.next()
		parts = append(parts, Part{Text: text, Gap: s.skip()})
	}
	return parts
}

// splitter splits a text from its start. It stores only the entities that end after the cursor.
type splitter struct {
	cursor
	entities []Entity
	limit    int
	visible  int // UTF-16 units from the cursor to the first visible character; less than limit
}

// skip moves the cursor past white space, and returns the white space. If code follows, the cursor stops before the
// indentation of the code. Only an indentation of at least s.limit/2 UTF-16 units is skipped, too.
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

// pass drops entities that end at or before an offset. The offset is in UTF-16 units.
func (s *splitter) pass(unit int) {
	for len(s.entities) > 0 && s.entities[0].End() <= unit {
		s.entities = s.entities[1:]
	}
}

// codeAt returns the code entity that contains the given UTF-16 offset. The offset must not be before the cursor.
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

// window returns the text after the cursor, up to the given number of UTF-16 units. It does not split a surrogate pair.
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

// budget returns the maximum length of the next part in UTF-16 units. This is usually s.limit. It is less if one
// message cannot hold all entities of a part with this length.
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

// load is the number of entities in a message, and the total length of their addresses and languages in bytes.
type load struct{ count, bytes int }

// add counts e, and reports whether one message can hold all entities counted so far.
func (l *load) add(e Entity) bool {
	l.count, l.bytes = l.count+1, l.bytes+len(e.URL)+len(e.Language)
	return l.count <= MaxEntities && l.bytes <= maxAttributes
}

// Carried reports whether one message can hold all entities of t. Their number and the total length of their addresses
// are limited.
func Carried(t Text) bool {
	var l load
	for _, e := range t.Entities {
		if !l.add(e) {
			return false
		}
	}
	return true
}
