package render

import (
	"slices"
	"strings"
)

// Len returns the length of s in UTF-16 code units, as Telegram counts it.
func Len(s string) int {
	n := 0
	for _, r := range s {
		n += runeUnits(r)
	}
	return n
}

// Fits reports whether t is at most limit UTF-16 units long.
func Fits(t Text, limit int) bool { return len(t.Text) <= limit || Len(t.Text) <= limit }

// Plain returns s without formatting. It replaces characters that Telegram would change: a tab by four spaces, control
// characters by a space, and invalid UTF-8 by U+FFFD. Other white space stays.
func Plain(s string) Text { return Text{Text: string(appendClean(nil, s))} }

// Styled returns s with formatting. kind must not need a URL. For code with a language, use CodeBlock. A text that
// consists only of white space stays unformatted.
func Styled(kind Kind, s string) Text { return entire(s, Entity{Kind: kind}) }

// CodeBlock returns s as a code block. language may be empty.
func CodeBlock(language, s string) Text {
	if rest, indented := strings.CutPrefix(s, " "); indented && language == "diff" {
		s = "\u00a0" + rest // a non-breaking space, because Telegram would drop a space at the start of the code
	}
	return entire(s, Entity{Kind: Pre, Language: language})
}

func entire(s string, e Entity) Text {
	b := builder{buf: appendClean(nil, s)}
	b.units = unitsOf(b.buf)
	b.emit(e, 0, 0)
	return Text{Text: string(b.buf), Entities: b.entities}
}

// Wrap adds formatting to all of t. A quote replaces quotes inside t. Code and Pre replace all formatting inside t.
// Other kinds do not apply to code inside t.
func Wrap(kind Kind, t Text) Text {
	if kind.raw() {
		return Styled(kind, t.Text)
	}
	b := &builder{}
	b.start = -1
	b.begin(kind, "")
	b.add(t)
	b.end()
	sortEntities(b.entities)
	return Text{Text: string(b.buf), Entities: b.entities}
}

// Concat joins texts.
func Concat(texts ...Text) Text {
	var buf []byte
	var es []Entity
	units := 0
	for _, t := range texts {
		buf = append(buf, t.Text...)
		for _, e := range t.Entities {
			e.Offset += units
			es = append(es, e)
		}
		units += Len(t.Text)
	}
	return Text{Text: string(buf), Entities: es}
}

// Slot is a placeholder in a string that Filled replaces by a formatted text.
const Slot = "\uFFFC"

// Filled returns s without formatting, and with t in place of the first Slot.
func Filled(s string, t Text) Text {
	before, after, _ := strings.Cut(s, Slot)
	return Concat(Plain(before), t, Plain(after))
}

// Slice returns the part of t between two UTF-16 offsets, and shortens entities that extend beyond them. An offset
// inside a surrogate pair means the end of the pair, and an offset outside of t means the nearest end of t.
func Slice(t Text, from, to int) Text {
	c := cursor{text: t.Text}
	c.take(from)
	start := c.units
	s := c.take(to)
	return Text{Text: s, Entities: clip(t.Entities, s, start, c.units)}
}

// clip returns the parts of entities between the offsets start and end. s is the text between these offsets. The
// offsets of the returned entities are relative to the start of s.
func clip(es []Entity, s string, start, end int) []Entity {
	var out []Entity
	at := cursor{text: s}
	for _, e := range es {
		if e.Offset >= end {
			break
		}
		from, to := max(e.Offset, start), min(e.End(), end)
		if from >= to {
			continue
		}
		e.Offset, e.Length = from-start, to-from
		at.take(e.Offset)
		rest := at
		if e, ok := tighten(e, rest.take(e.End())); ok {
			out = append(out, e)
		}
	}
	sortEntities(out)
	return out
}

// tighten shortens an entity so that it has no white space at its edges, as Telegram does. s is the text of the entity.
// tighten returns false if s consists of white space only.
func tighten(e Entity, s string) (Entity, bool) {
	n := len(s)
	for n > 0 && trimmed(s[n-1]) {
		n--
	}
	e.Length -= len(s) - n
	for i := 0; i < n && trimmed(s[i]) && !e.Kind.keepsIndent(); i++ {
		e.Offset, e.Length = e.Offset+1, e.Length-1
	}
	return e, e.Length > 0
}

// Shorten shortens t to at most limit UTF-16 units. A shortened text ends with an ellipsis. Shorten does not cut inside
// a visible character.
func Shorten(t Text, limit int) Text {
	if Fits(t, limit) {
		return t
	}
	if limit <= 0 {
		return Text{}
	}
	head := Slice(t, 0, charCut(t.Text, limit-1))
	n := len(head.Text)
	for n > 0 && trimmed(head.Text[n-1]) {
		n--
	}
	head.Text = head.Text[:n] + "…"
	head.Entities = slices.Clip(head.Entities)
	return head
}
