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

// Plain returns s without formatting. It replaces characters that Telegram would change or drop: tabs by four spaces,
// control characters by one space, invalid UTF-8 by U+FFFD. Whitespace stays.
func Plain(s string) Text { return Text{Text: string(appendClean(nil, s))} }

// Styled formats all of s as kind, for kinds without attributes. A text that is only whitespace stays plain. For code
// with a language, see CodeBlock.
func Styled(kind Kind, s string) Text { return entire(s, Entity{Kind: kind}) }

// CodeBlock returns s as a block of code. language may be empty.
func CodeBlock(language, s string) Text {
	if rest, indented := strings.CutPrefix(s, " "); indented && language == "diff" {
		s = "\u00a0" + rest // Telegram removes leading spaces, so the line would lose its indentation
	}
	return entire(s, Entity{Kind: Pre, Language: language})
}

func entire(s string, e Entity) Text {
	b := builder{buf: appendClean(nil, s)}
	b.units = unitsOf(b.buf)
	b.emit(e, 0, 0)
	return Text{Text: string(b.buf), Entities: b.entities}
}

// Wrap formats all of t as kind, in addition to its formatting. A quote replaces inner quotes. Code and Pre replace
// all other formatting. Other kinds do not apply to code in t.
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

// Concat joins texts without a separator.
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

// Slot is the placeholder for a formatted text in a string; see Filled.
const Slot = "\uFFFC"

// Filled returns s without formatting, with t in place of the first Slot.
func Filled(s string, t Text) Text {
	before, after, _ := strings.Cut(s, Slot)
	return Concat(Plain(before), t, Plain(after))
}

// Slice returns the part of t between the UTF-16 offsets from and to. It cuts entities at the offsets. An offset
// inside a surrogate pair counts as the end of the pair. An offset outside of t counts as the nearest edge.
func Slice(t Text, from, to int) Text {
	c := cursor{text: t.Text}
	c.take(from)
	start := c.units
	s := c.take(to)
	return Text{Text: s, Entities: clip(t.Entities, s, start, c.units)}
}

// clip returns the parts of es between the offsets start and end. s is the text between them.
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

// tighten shortens e by the whitespace at its edges, which Telegram would remove. s is e's text. It returns false if
// nothing is left.
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

// Shorten cuts t to at most limit UTF-16 units. If it cuts anything, the last unit is an ellipsis. It does not cut
// inside a displayed character.
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
