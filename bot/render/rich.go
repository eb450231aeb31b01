package render

import (
	"slices"
	"strings"
)

// Telegram's limits for a rich message. A list item and a table row count as blocks.
const (
	RichLimit   = 32768 // UTF-16 units
	RichBlocks  = 500
	richColumns = 20
	richDepth   = 8 // levels of nesting; Telegram's limit of 16 includes the formatting
)

// BlockKind is the kind of a block in a rich message, spelled as in the Bot API.
type BlockKind string

// Kinds of blocks.
const (
	Paragraph BlockKind = "paragraph"
	Heading   BlockKind = "heading"
	PreBlock  BlockKind = "pre"
	Divider   BlockKind = "divider"
	QuoteOf   BlockKind = "blockquote" // has Blocks
	List      BlockKind = "list"
	TableOf   BlockKind = "table"   // has Rows
	Details   BlockKind = "details" // Text stays visible while the details are closed
)

// Block is a block of a rich message.
type Block struct {
	Kind     BlockKind `json:"kind"`
	Text     Text      `json:"text,omitzero"`
	Level    int       `json:"level,omitempty"`    // for headings, from 1
	Language string    `json:"language,omitempty"` // for code
	Blocks   []Block   `json:"blocks,omitempty"`   // in a quote or in details
	Items    []Item    `json:"items,omitempty"`
	Rows     [][]Cell  `json:"rows,omitempty"`
}

// Item is an item of a list.
type Item struct {
	Blocks []Block `json:"blocks"`
	Number int     `json:"number,omitempty"` // 0 for none
	Box    Box     `json:"box,omitempty"`
}

// Box is the checkbox of a list item.
type Box int

// Boxes of items.
const (
	NoBox Box = iota
	ToDo
	Done
)

// Cell is a cell of a table.
type Cell struct {
	Text   Text   `json:"text,omitzero"`
	Header bool   `json:"header,omitempty"`
	Align  string `json:"align"` // left, center or right
}

// Lay converts a text to blocks. Code and quotes become separate blocks, and the text around them becomes paragraphs.
func Lay(t Text) []Block {
	var out []Block
	at := cursor{text: t.Text}
	add := func(kind BlockKind, inside []Entity, to int, language string) {
		from := at.units
		text := at.take(to)
		part := Text{Text: text, Entities: clip(inside, text, from, at.units)}
		if kind == Paragraph {
			part = trimLines(part)
		}
		part.Entities = slices.DeleteFunc(slices.Clone(part.Entities), func(e Entity) bool {
			return e.Kind == Pre || e.Kind.quote()
		})
		switch {
		case IsBlank(part.Text):
		case kind == QuoteOf:
			out = append(out, Block{Kind: QuoteOf, Blocks: []Block{{Kind: Paragraph, Text: part}}})
		default:
			out = append(out, Block{Kind: kind, Text: part, Language: language})
		}
	}
	rest := t.Entities // entities that have not ended
	for _, e := range t.Entities {
		if e.Offset < at.units || e.Kind != Pre && !e.Kind.quote() {
			continue
		}
		kind := QuoteOf
		if e.Kind == Pre {
			kind = PreBlock
		}
		add(Paragraph, rest, e.Offset, "")
		for rest[0].End() <= e.Offset {
			rest = rest[1:]
		}
		add(kind, rest, e.End(), e.Language)
	}
	add(Paragraph, rest, Len(t.Text), "")
	return out
}

// trimLines returns t without empty lines at its start and end.
func trimLines(t Text) Text {
	from := len(t.Text) - len(strings.TrimLeft(t.Text, "\n"))
	return Slice(t, from, Len(strings.TrimRight(t.Text, "\n")))
}

// Fold returns a block that hides inside until a user opens it.
func Fold(summary Text, inside ...Block) Block {
	return Block{Kind: Details, Text: summary, Blocks: inside}
}

// extent is a size of blocks in the units that Telegram limits.
type extent struct{ units, blocks int }

func (s extent) within(limit extent) bool { return s.units <= limit.units && s.blocks <= limit.blocks }

func (s *extent) add(other extent) { s.units, s.blocks = s.units+other.units, s.blocks+other.blocks }

func (s *extent) take(other extent) { s.units, s.blocks = s.units-other.units, s.blocks-other.blocks }

func (b Block) extent() extent {
	s := extent{units: Len(b.Text.Text), blocks: 1}
	s.add(sizeOf(b.Blocks))
	for _, item := range b.Items {
		s.blocks++
		s.add(sizeOf(item.Blocks))
	}
	for _, row := range b.Rows {
		s.blocks++
		for _, c := range row {
			s.units += Len(c.Text.Text)
		}
	}
	return s
}

func sizeOf(blocks []Block) (s extent) {
	for _, b := range blocks {
		s.add(b.extent())
	}
	return s
}

// FitBlocks makes blocks fit into a rich message. First it empties the details blocks, from the first on, which does
// not count as cut. If that is not enough, it replaces the middle of the blocks by left, and returns true for cut.
func FitBlocks(blocks []Block, left Block) (fit []Block, cut bool) {
	limit := extent{RichLimit, RichBlocks}
	total := sizeOf(blocks)
	if total.within(limit) {
		return blocks, false
	}
	fit = slices.Clone(blocks)
	for i, b := range fit {
		if b.Kind != Details {
			continue
		}
		fit[i] = Block{Kind: Paragraph, Text: b.Text}
		if total.take(sizeOf(b.Blocks)); total.within(limit) {
			return fit, false
		}
	}
	tail := tailOf(fit, extent{RichLimit / 4, RichBlocks / 4})
	rest := limit
	rest.take(sizeOf(tail))
	rest.take(left.extent())
	return append(append(headOf(fit, rest), left), tail...), true
}

// headOf returns the beginning of blocks, as far as room allows.
func headOf(blocks []Block, room extent) (out []Block) {
	for _, b := range blocks {
		s := b.extent()
		if !s.within(room) {
			return append(out, b.head(room)...)
		}
		out = append(out, b)
		room.take(s)
	}
	return out
}

// head returns the beginning of a block, as far as room allows.
func (b Block) head(room extent) []Block {
	const least = 64 // minimum units for a part of a block
	if room.units < least || room.blocks < 2 {
		return nil
	}
	s := extent{units: Len(b.Text.Text), blocks: 1}
	switch b.Kind {
	case List:
		b.Items = fitting(b.Items, &s, room, func(i Item) extent { return Block{Items: []Item{i}}.extent() })
	case TableOf:
		b.Rows = fitting(b.Rows, &s, room, func(r []Cell) extent { return Block{Rows: [][]Cell{r}}.extent() })
	case QuoteOf:
		b.Blocks = headOf(b.Blocks, extent{room.units, room.blocks - 1})
	case Details:
		return nil
	default:
		b.Text = Shorten(b.Text, room.units)
		return []Block{b}
	}
	if len(b.Items)+len(b.Rows)+len(b.Blocks) == 0 {
		return nil
	}
	return []Block{b}
}

// fitting returns the first parts of a block that fit into room, and adds their sizes to s. of returns the size of a
// part including one block too many.
func fitting[P any](parts []P, s *extent, room extent, of func(P) extent) []P {
	for i, p := range parts {
		part := of(p)
		part.blocks--
		if s.add(part); !s.within(room) {
			return parts[:i]
		}
	}
	return parts
}

// tailOf returns the end of blocks, as far as room allows.
func tailOf(blocks []Block, room extent) []Block {
	from := len(blocks)
	for from > 0 {
		s := blocks[from-1].extent()
		if !s.within(room) {
			break
		}
		room.take(s)
		from--
	}
	out := blocks[from:]
	if from == 0 || room.blocks < 1 || sizeOf(out).units > RichLimit/16 {
		return out
	}
	if b := blocks[from-1]; b.Kind == Paragraph || b.Kind == PreBlock { // take the end of one long block
		n := Len(b.Text.Text)
		b.Text = Slice(b.Text, n-room.units, n)
		if line := strings.IndexByte(b.Text.Text, '\n'); line >= 0 && line < len(b.Text.Text)/2 {
			b.Text = Slice(b.Text, Len(b.Text.Text[:line+1]), n)
		}
		return append([]Block{b}, out...)
	}
	return out
}
