package render

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// tables recognizes tables in paragraphs. It replaces goldmark's own table parser, which drops cells beyond the number
// of columns in the header.
type tables struct{}

// table is a block in the syntax tree. The children of a table are rows. The children of a row are cells, which have
// inline content.
type table struct {
	ast.BaseBlock
	align []align
}

type align byte

const (
	alignLeft align = iota
	alignCenter
	alignRight
)

type tableRow struct{ ast.BaseBlock }

type tableCell struct{ ast.BaseBlock }

var (
	kindTable     = ast.NewNodeKind("Table")
	kindTableRow  = ast.NewNodeKind("TableRow")
	kindTableCell = ast.NewNodeKind("TableCell")
)

func (*table) Kind() ast.NodeKind     { return kindTable }
func (*tableRow) Kind() ast.NodeKind  { return kindTableRow }
func (*tableCell) Kind() ast.NodeKind { return kindTableCell }

func (t *table) Dump(source []byte, level int)     { ast.DumpHelper(t, source, level, nil, nil) }
func (t *tableRow) Dump(source []byte, level int)  { ast.DumpHelper(t, source, level, nil, nil) }
func (t *tableCell) Dump(source []byte, level int) { ast.DumpHelper(t, source, level, nil, nil) }

// Transform implements parser.ParagraphTransformer. A table starts with a header line and a delimiter line such as
// "|---|---|", with the same number of cells. Lines before the header stay a paragraph.
func (tables) Transform(node *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines, source := node.Lines(), reader.Source()
	for i := 1; i < lines.Len(); i++ {
		aligns := parseAligns(lines.At(i), source)
		if aligns == nil {
			continue
		}
		header := splitRow(lines.At(i-1), source)
		if len(header) != len(aligns) {
			return
		}
		t := &table{align: aligns}
		t.SetPos(lines.At(i - 1).Start)
		t.AppendChild(t, newRow(header))
		for j := i + 1; j < lines.Len(); j++ {
			t.AppendChild(t, newRow(splitRow(lines.At(j), source)))
		}
		replaceTail(node, t, i-1, source)
		return
	}
}

// replaceTail replaces all lines of a paragraph after the first n lines by a table.
func replaceTail(p *ast.Paragraph, t *table, n int, source []byte) {
	p.Parent().InsertAfter(p.Parent(), p, t)
	if n == 0 {
		t.SetBlankPreviousLines(p.HasBlankPreviousLines())
		p.Parent().RemoveChild(p.Parent(), p)
		return
	}
	p.Lines().SetSliced(0, n)
	last := p.Lines().At(n - 1)
	p.Lines().Set(n-1, last.TrimRightSpace(source))
}

func parseAligns(s text.Segment, source []byte) []align {
	line := source[s.Start:s.Stop]
	if bytes.IndexByte(line, '|') < 0 || len(bytes.Trim(line, "|-: \t\n")) > 0 {
		return nil
	}
	var out []align
	for _, c := range splitRow(s, source) {
		cell := source[c.Start:c.Stop]
		dashes := bytes.Trim(cell, ":")
		if len(dashes) == 0 || len(bytes.Trim(dashes, "-")) > 0 || len(cell)-len(dashes) > 2 {
			return nil
		}
		left, right := cell[0] == ':', cell[len(cell)-1] == ':'
		switch {
		case left && right:
			out = append(out, alignCenter)
		case right:
			out = append(out, alignRight)
		default:
			out = append(out, alignLeft)
		}
	}
	return out
}

// splitRow returns the cells of a line without white space around them. An escaped pipe does not end a cell.
func splitRow(s text.Segment, source []byte) []text.Segment {
	s = s.TrimLeftSpace(source)
	s = s.TrimRightSpace(source)
	pos, stop := s.Start, s.Stop
	if pos < stop && source[pos] == '|' {
		pos++
	}
	if pos < stop && source[stop-1] == '|' && (stop-2 < pos || source[stop-2] != '\\') {
		stop--
	}
	var out []text.Segment
	for start := pos; pos <= stop; pos++ {
		if pos < stop && (source[pos] != '|' || source[pos-1] == '\\' && pos > start) {
			continue
		}
		cell := text.NewSegment(start, pos)
		cell = cell.TrimLeftSpace(source)
		out = append(out, cell.TrimRightSpace(source))
		start = pos + 1
	}
	return out
}

func newRow(cells []text.Segment) *tableRow {
	row := &tableRow{}
	for _, s := range cells {
		c := &tableCell{}
		lines := text.NewSegments()
		lines.Append(s)
		c.SetLines(lines)
		row.AppendChild(row, c)
	}
	return row
}

// table writes a table in monospace if a phone can show it in full width. Otherwise it writes lines of text.
func (r *renderer) table(t *table) {
	rows := r.cells(t)
	widths := columnWidths(rows)
	if total(widths) <= maxTableWidth {
		r.pre("", grid(rows, widths, t.align))
		return
	}
	if widest(rows[0]) > maxLabelWidth || repeats(rows) > maxRepeats {
		r.piped(rows)
		return
	}
	r.records(rows)
}

func (r *renderer) cells(t *table) [][]Text {
	var rows [][]Text
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []Text
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			in := &renderer{source: r.source, out: &builder{}, inCell: true}
			in.inlines(c)
			cells = append(cells, in.out.text())
		}
		rows = append(rows, cells)
	}
	return rows
}

// flat returns t without formatting and on one line. It writes the addresses of links after their text.
func flat(t Text) string {
	var b strings.Builder
	c := cursor{text: t.Text}
	for _, e := range t.Entities {
		if e.Kind == Link {
			b.WriteString(c.take(e.Offset))
			label := c.take(e.End())
			b.WriteString(label)
			if label != e.URL {
				b.WriteString(" (" + e.URL + ")")
			}
		}
	}
	b.WriteString(t.Text[c.bytes:])
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// Table contains the visible text of a table. The first row is the header.
type Table struct {
	Rows  [][]string
	Right []bool // whether the column with this index is aligned to the right
}

// Tables returns all tables in a Markdown text, including those inside quotes and lists.
func Tables(src string) []Table {
	clean := []byte(cleanSource(src))
	r := &renderer{source: clean, out: &builder{}}
	var all []Table
	_ = ast.Walk(parse(clean, false), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		t, ok := n.(*table)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		out := Table{Right: make([]bool, len(t.align))}
		for i, a := range t.align {
			out.Right[i] = a == alignRight
		}
		for _, row := range r.cells(t) {
			var cells []string
			for _, c := range row {
				cells = append(cells, flat(c))
			}
			out.Rows = append(out.Rows, cells)
		}
		all = append(all, out)
		return ast.WalkSkipChildren, nil
	})
	return all
}
