package render

import (
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Blocks renders the stream's Markdown as the blocks of a rich message: tables, lists, headings and code become
// separate blocks. First, it calls the function clean to remove unwanted text from the Markdown. The blocks may exceed
// Telegram's limits; see FitBlocks. If the Markdown is far longer than a rich message, Blocks replaces its middle by
// the block placeholder, and returns cut = true.
func (s *Stream) Blocks(clean func(source string) string, placeholder Block) (blocks []Block, cut bool) {
	src := clean(string(s.source))
	if len(src) <= 2*richPart {
		return blocksOf(src, s.FileMarks), false
	}
	head, tail := src[:richPart], src[len(src)-richPart:]
	if at := strings.LastIndexByte(head, '\n'); at > richPart/2 {
		head = head[:at]
	}
	if at := strings.IndexByte(tail, '\n'); at >= 0 && at < richPart/2 {
		tail = tail[at+1:]
	}
	return slices.Concat(blocksOf(head, s.FileMarks), []Block{placeholder}, blocksOf(tail, s.FileMarks)), true
}

// richPart is the number of bytes that are rendered at the start, and at the end, of a very long source. A rich message
// cannot show more.
const richPart = 2 * RichLimit

// blocksOf renders Markdown as blocks. If withFileMarks is false, file marks are ordinary text.
func blocksOf(src string, withFileMarks bool) []Block {
	clean := []byte(cleanSource(src))
	return blockReader{clean}.inside(parse(clean, withFileMarks), 1)
}

type blockReader struct{ source []byte }

// inside returns the blocks for the children of n. depth is the number of blocks around them.
func (r blockReader) inside(n ast.Node, depth int) (out []Block) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		out = append(out, r.block(c, depth)...)
	}
	return out
}

func (r blockReader) block(n ast.Node, depth int) []Block {
	switch n := n.(type) {
	case *ast.Heading:
		return only(Block{Kind: Heading, Text: r.text(n), Level: n.Level})
	case *ast.ThematicBreak:
		return []Block{{Kind: Divider}}
	case *ast.Blockquote:
		if inner := r.inside(n, depth+1); depth < richDepth && len(inner) > 0 {
			return []Block{{Kind: QuoteOf, Blocks: inner}}
		}
	case *ast.List:
		if depth+2 <= richDepth {
			return []Block{{Kind: List, Items: r.items(n, depth)}}
		}
	case *table:
		if rows := r.rows(n); rows != nil {
			return []Block{{Kind: TableOf, Rows: rows}}
		}
	case *ast.FencedCodeBlock, *ast.CodeBlock:
	default:
		return only(Block{Kind: Paragraph, Text: r.text(n)})
	}
	flat := r.flat(n)
	if depth >= richDepth { // Telegram allows no further quotes at this depth
		flat.Entities = slices.DeleteFunc(flat.Entities, func(e Entity) bool { return e.Kind.quote() })
	}
	return Lay(flat)
}

func only(b Block) []Block {
	if IsBlank(b.Text.Text) {
		return nil
	}
	return []Block{b}
}

func (r blockReader) text(n ast.Node) Text {
	in := &renderer{source: r.source, out: &builder{}}
	in.inlines(n)
	return in.out.text()
}

func (r blockReader) flat(n ast.Node) Text {
	in := &renderer{source: r.source, out: &builder{}}
	in.block(n)
	return in.out.text()
}

func (r blockReader) items(n *ast.List, depth int) (out []Item) {
	number := n.Start - 1
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		var item Item
		if n.IsOrdered() {
			number = numberAfter(number, c)
			item.Number = number
		}
		item.Box = takeBox(c)
		if item.Blocks = r.inside(c, depth+2); len(item.Blocks) == 0 {
			item.Blocks = []Block{{Kind: Paragraph, Text: Text{Text: "–"}}} // Telegram rejects empty items
		}
		out = append(out, item)
	}
	return out
}

// takeBox removes the checkbox at the start of a list item and returns it.
func takeBox(item ast.Node) Box {
	first := item.FirstChild()
	if first == nil {
		return NoBox
	}
	box, ok := first.FirstChild().(*taskBox)
	if !ok {
		return NoBox
	}
	first.RemoveChild(first, box)
	if box.done {
		return Done
	}
	return ToDo
}

// rows returns the rows of a table, or nil if it has more columns than Telegram allows.
func (r blockReader) rows(t *table) (out [][]Cell) {
	align := func(column int) string {
		if column < len(t.align) {
			return []string{"left", "center", "right"}[t.align[column]]
		}
		return "left"
	}
	in := &renderer{source: r.source}
	for i, row := range in.cells(t) {
		if len(row) > richColumns {
			return nil
		}
		var cells []Cell
		for j, text := range row {
			cells = append(cells, Cell{Text: text, Header: i == 0, Align: align(j)})
		}
		out = append(out, cells)
	}
	return out
}
