package render

import (
	"slices"
	"strings"
)

// Telegram's limits for one rich message. Each list item and each table row counts as a block, too.
const (
	RichLimit   = 32768 // UTF-16 units
	RichBlocks  = 500
	richColumns = 20
	richDepth   = 8 // maximum nesting of blocks; Telegram allows 16 levels including formatting
)

// BlockKind is the kind of a block in a rich message, named as in the Bot API.
type BlockKind string

// Kinds of blocks.
const (
	Paragraph BlockKind = "paragraph"
	Heading   BlockKind = "heading"
	PreBlock  BlockKind = "pre"
	Divider   BlockKind = "divider"
	QuoteOf   BlockKind = "blockquote" // contains Blocks
	List      BlockKind = "list"
	TableOf   BlockKind = "table"   // contains Rows
	Details   BlockKind = "details" // shows Text; users can unfold the block to see Blocks
)

// Block is a part of a rich message, such as a paragraph or a table.
type Block struct {
	Kind     BlockKind `json:"kind"`
	Text     Text      `json:"text,omitzero"`
	Level    int       `json:"level,omitempty"`    // level of a heading; 1 is the highest
	Language string    `json:"language,omitempty"` // programming language of PreBlock
	Blocks   []Block   `json:"blocks,omitempty"`   // content of QuoteOf or Details
	Items    []Item    `json:"items,omitempty"`
	Rows     [][]Cell  `json:"rows,omitempty"`
}

// Item is an item of a list.
type Item struct {
	Blocks []Block `json:"blocks"`
	Number int     `json:"number,omitempty"` // number of the item in a numbered list; otherwise 0
	Box    Box     `json:"box,omitempty"`
}

// Box is the checkbox of a list item.
type Box int

// Values of Box.
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

// Lay converts a text to blocks. Code and quotes become separate blocks; the text between them becomes paragraphs.
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
	rest := t.Entities // entities that end after the cursor
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

func trimLines(t Text) Text {
	from := len(t.Text) - len(strings.TrimLeft(t.Text, "\n"))
	return Slice(t, from, Len(strings.TrimRight(t.Text, "\n")))
}

// Fold returns a block that shows summary. When a user taps the block, it also shows inside.
func Fold(summary Text, inside ...Block) Block {
	return Block{Kind: Details, Text: summary, Blocks: inside}
}

// extent is the size of a block, in the two units that Telegram limits.
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

// FitBlocks makes blocks fit into one rich message. First, it removes the content of Details blocks, beginning with the
// first one, until the rest fits. If the message is still too large, FitBlocks replaces its middle by the block
// placeholder, and returns cut = true.
func FitBlocks(blocks []Block, placeholder Block) (fit []Block, cut bool) {
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
	rest.take(placeholder.extent())
	return append(append(headOf(fit, rest), placeholder), tail...), true
}

// headOf returns as much of the beginning of blocks as fits into room.
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

// head returns as much of the beginning of a block as fits into room.
func (b Block) head(room extent) []Block {
	const least = 64 // minimum size of a part in UTF-16 units
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

// fitting returns as many of the parts as fit into room, from the first one on. Parts are list items or rows. It adds
// the sizes of the returned parts to s. sizeOfPart returns the size of a block that contains a single part.
func fitting[P any](parts []P, s *extent, room extent, sizeOfPart func(P) extent) []P {
	for i, p := range parts {
		part := sizeOfPart(p)
		part.blocks--
		if s.add(part); !s.within(room) {
			return parts[:i]
		}
	}
	return parts
}

// tailOf returns as much of the end of blocks as fits into room.
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
	if b := blocks[from-1]; b.Kind == Paragraph || b.Kind == PreBlock { // use only the end of this block
		n := Len(b.Text.Text)
		b.Text = Slice(b.Text, n-room.units, n)
		if line := strings.IndexByte(b.Text.Text, '\n'); line >= 0 && line < len(b.Text.Text)/2 {
			b.Text = Slice(b.Text, Len(b.Text.Text[:line+1]), n)
		}
		return append([]Block{b}, out...)
	}
	return out
}
