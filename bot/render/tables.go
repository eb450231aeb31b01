package render

import "github.com/yuin/goldmark/ast"

// Table is a table of a Markdown text: rows of cells as users read them, the first row a header.
type Table struct {
	Rows  [][]string
	Right []bool // by column: its cells stand at the right
}

// Tables lists the tables of a Markdown text, those in quotes and lists included.
func Tables(src string) []Table {
	clean := []byte(cleanSource(src))
	r := &renderer{source: clean, out: newBuilder()}
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
