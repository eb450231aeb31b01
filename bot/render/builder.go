package render

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// builder builds a Text step by step. It drops characters that Telegram would drop, and closes and reopens styles where
// Telegram does not allow them to nest.
type builder struct {
	buf      []byte
	units    int // length of buf in UTF-16 units
	start    int // length of buf at which write drops white space: the start of the current block; -1: drop none
	entities []Entity
	open     []span
	count    counts
}

// span is a style that was opened by begin and not closed by end yet.
type span struct {
	kind  Kind
	url   string
	units int  // UTF-16 offset at which begin or resume opened the style
	bytes int  // the same offset in bytes
	shown bool // false if a surrounding span has the same style, or Telegram does not allow it here
}

// counts contains the numbers of open spans with shown = true, by kind.
type counts struct{ quotes, links, bold, italic, strike int }

func (c *counts) of(k Kind) *int {
	switch k {
	case Blockquote, Expandable:
		return &c.quotes
	case Link:
		return &c.links
	case Bold:
		return &c.bold
	case Italic:
		return &c.italic
	default:
		return &c.strike
	}
}

// write appends s, without white space at the start of a block.
func (b *builder) write(s string) {
	from := len(b.buf)
	b.buf = appendClean(b.buf, s)
	if from == b.start {
		n := 0
		for from+n < len(b.buf) && trimmed(b.buf[from+n]) {
			n++
		}
		b.buf = append(b.buf[:from], b.buf[from+n:]...)
	}
	b.units += unitsOf(b.buf[from:])
}

// begin opens a style. The caller must close it with end.
func (b *builder) begin(kind Kind, url string) {
	count := b.count.of(kind)
	shown := *count == 0 && !(kind.quote() && b.count.links > 0)
	if shown {
		*count++
	}
	if shown && kind.quote() {
		b.interrupt()
		defer b.resume() // reopen the other styles inside of the quote, because a quote cannot be inside of a style
	}
	b.open = append(b.open, span{kind: kind, url: url, units: b.units, bytes: len(b.buf), shown: shown})
}

func (b *builder) end() {
	s := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	if !s.shown {
		return
	}
	*b.count.of(s.kind)--
	if s.kind.quote() {
		b.interrupt()
		defer b.resume()
	}
	b.emit(Entity{Kind: s.kind, URL: s.url}, s.units, s.bytes)
}

// beginAt opens a style at an earlier position, given in bytes and in UTF-16 units.
func (b *builder) beginAt(kind Kind, bytes, units int) {
	b.begin(kind, "")
	s := &b.open[len(b.open)-1]
	s.bytes, s.units = bytes, units
}

// raw appends s as code of the kind Code or Pre. Telegram does not allow other styles in code. So raw closes the open
// styles before the code, and opens them again after it. Inside a link, raw appends s without the style of code.
func (b *builder) raw(kind Kind, language, s string) {
	if b.count.links > 0 {
		b.write(s)
		return
	}
	b.interrupt()
	units, bytes := b.units, len(b.buf)
	if !IsBlank(s) {
		start := b.start
		b.start = -1 // keep the indentation of code
		b.write(s)
		b.start = start
	} else {
		b.write(s)
	}
	b.emit(Entity{Kind: kind, Language: language}, units, bytes)
	b.resume()
}

func (b *builder) interrupt() {
	for _, s := range b.open {
		if s.shown && !s.kind.quote() {
			b.emit(Entity{Kind: s.kind, URL: s.url}, s.units, s.bytes)
		}
	}
}

func (b *builder) resume() {
	for i := range b.open {
		if s := &b.open[i]; s.shown && !s.kind.quote() {
			s.units, s.bytes = b.units, len(b.buf)
		}
	}
}

// emit adds the entity e, which ends at the end of the text. The parameters units and bytes are the start of the
// entity, in UTF-16 units and in bytes. emit excludes white space at the edges, which Telegram would not format.
func (b *builder) emit(e Entity, units, bytes int) {
	to, end := len(b.buf), b.units
	for to > bytes && trimmed(b.buf[to-1]) {
		to, end = to-1, end-1
	}
	if !e.Kind.keepsIndent() {
		for bytes < to && trimmed(b.buf[bytes]) {
			bytes, units = bytes+1, units+1
		}
	}
	if bytes == to {
		return
	}
	e.Offset, e.Length = units, end-units
	b.entities = append(b.entities, e)
}

func (b *builder) add(t Text) {
	var ends []int
	at := cursor{text: t.Text}
	closeUpTo := func(unit int) {
		for len(ends) > 0 && ends[len(ends)-1] <= unit {
			b.write(at.take(ends[len(ends)-1]))
			b.end()
			ends = ends[:len(ends)-1]
		}
	}
	for _, e := range t.Entities {
		closeUpTo(e.Offset)
		b.write(at.take(e.Offset))
		if e.Kind.raw() {
			b.raw(e.Kind, e.Language, at.take(e.End()))
			continue
		}
		b.begin(e.Kind, e.URL)
		ends = append(ends, e.End())
	}
	closeUpTo(int(^uint(0) >> 1))
	b.write(at.take(int(^uint(0) >> 1)))
}

// text returns the built text. It removes white space at the end.
func (b *builder) text() Text {
	t := b.untrimmed()
	t.Text = strings.TrimRight(t.Text, " \n")
	return t
}

// untrimmed returns the built text, including white space at the end.
func (b *builder) untrimmed() Text {
	sortEntities(b.entities)
	return Text{Text: string(b.buf), Entities: b.entities}
}

func sortEntities(es []Entity) {
	slices.SortStableFunc(es, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length),
			cmp.Compare(rank(a.Kind), rank(b.Kind)))
	})
}

// rank defines how entities for the same text are nested: an entity contains the entities with a higher rank.
func rank(k Kind) int {
	switch k {
	case Blockquote, Expandable:
		return 0
	case Link:
		return 1
	case Pre:
		return 2
	case Code:
		return 3
	case Strikethrough:
		return 4
	case Bold:
		return 5
	case Italic:
		return 6
	}
	return -1
}

func unitsOf(b []byte) int {
	n := 0
	for _, c := range b {
		switch {
		case c >= 0xf0:
			n += 2
		case c < 0x80 || c >= 0xc0:
			n++
		}
	}
	return n
}

// cursor reads a text from start to end. Its position is known in bytes and in UTF-16 units.
type cursor struct {
	text  string
	bytes int
	units int
}

// take returns the text from the cursor to the given UTF-16 offset, and moves the cursor there. If the offset is in the
// middle of a surrogate pair, take includes the whole pair.
func (c *cursor) take(unit int) string {
	from := c.bytes
	for c.units < unit && c.bytes < len(c.text) {
		r, size := utf8.DecodeRuneInString(c.text[c.bytes:])
		c.bytes += size
		c.units += runeUnits(r)
	}
	return c.text[from:c.bytes]
}

func runeUnits(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}
