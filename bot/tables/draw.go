package tables

import (
	"strings"

	"ductor/bot/picture"
	"ductor/bot/render"
)

// Limits of a picture, in cells.
const (
	widest  = 2 * picture.PhoneColumns // width of a table with many columns; wider cells are broken into lines
	perCell = 10                       // narrower columns are hard to read
	gapWide = 2
	rowsMax = 160  // lines; the picture shows how many it omits
	columns = 32   // columns; the picture omits further columns
	cellMax = 2048 // characters of a cell; the picture omits the rest
)

// Draw draws a table: a bold header, and a line between rows. Cells that are too wide are broken into lines.
func Draw(theme picture.Theme, t render.Table) ([]byte, error) {
	t = bounded(t)
	widths := fit(t)
	total := gapWide * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	var rows [][]string // lines; each has one string per column
	var heads []int     // indexes of the lines that start a row
	for _, row := range t.Rows {
		heads = append(heads, len(rows))
		rows = append(rows, lines(row, widths)...)
		if len(rows) > rowsMax {
			rows = append(rows[:rowsMax], []string{"…"})
			break
		}
	}
	canvas, err := picture.New(theme, max(total, 1), len(rows))
	if err != nil {
		return nil, err
	}
	body := len(rows)
	if len(heads) > 1 {
		body = heads[1]
	}
	canvas.Band(0, min(body, len(rows)), picture.Header)
	for y, row := range rows {
		weight := picture.Regular
		if y < body {
			weight = picture.Bold
		}
		x := 0
		for i, cell := range row {
			at := x
			if i < len(t.Right) && t.Right[i] {
				at += max(widths[i]-picture.Width(cell), 0)
			}
			canvas.Text(at, y, picture.Ink, weight, cell)
			x += widths[i] + gapWide
		}
	}
	for _, y := range heads[1:] {
		if y < len(rows) {
			canvas.Rule(float64(y), picture.Grid)
		}
	}
	return canvas.PNG()
}

// bounded cuts t to the limits of a picture, with ellipses. So an agent cannot make ductor lay out megabytes.
func bounded(t render.Table) render.Table {
	var rows [][]string
	for _, row := range t.Rows[:min(len(t.Rows), rowsMax+1)] {
		var cells []string
		for _, cell := range row[:min(len(row), columns)] {
			cells = append(cells, shortened(cell))
		}
		if len(row) > columns {
			cells[columns-1] = "…"
		}
		rows = append(rows, cells)
	}
	t.Rows = rows
	return t
}

// shortened returns a cell of at most cellMax characters.
func shortened(cell string) string {
	n := 0
	for at := range cell {
		if n++; n > cellMax {
			return cell[:at] + "…"
		}
	}
	return cell
}

// fit returns the width of each column: the width of its cells, or less if the picture would be too wide. The widest
// columns shrink first.
func fit(t render.Table) []int {
	var widths []int
	for _, row := range t.Rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = max(widths[i], picture.Width(c))
		}
	}
	if len(widths) == 0 {
		widths = []int{1}
	}
	room := min(max(picture.PhoneColumns, perCell*len(widths)), widest)
	room = max(room-gapWide*(len(widths)-1), len(widths))
	for sum(widths) > room {
		at := 0
		for i, w := range widths {
			if w > widths[at] {
				at = i
			}
		}
		widths[at]--
	}
	return widths
}

func sum(widths []int) (n int) {
	for _, w := range widths {
		n += w
	}
	return n
}

// lines breaks the cells of a row into lines, at blanks if possible.
func lines(row []string, widths []int) [][]string {
	var out [][]string
	for i, cell := range row {
		for y, part := range broken(cell, widths[i]) {
			if y == len(out) {
				out = append(out, make([]string, len(row)))
			}
			out[y][i] = part
		}
	}
	if out == nil {
		out = [][]string{{}}
	}
	return out
}

func broken(cell string, width int) []string {
	var all []string
	now := ""
	for word := range strings.FieldsSeq(cell) {
		for {
			room := width - picture.Width(now)
			if now != "" {
				room--
			}
			if picture.Width(word) <= room {
				break
			}
			if now != "" {
				all, now = append(all, now), ""
				continue
			}
			head := []rune(word)[:width]
			all, word = append(all, string(head)), word[len(string(head)):]
		}
		if now != "" && word != "" {
			now += " "
		}
		now += word
	}
	return append(all, now)
}
