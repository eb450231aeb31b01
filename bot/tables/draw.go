package tables

import (
	"strings"

	"ductor/bot/picture"
	"ductor/bot/render"
)

// Limits of a picture, in cells. A cell is the space of one character.
const (
	widest  = 2 * picture.PhoneColumns // maximum width of a table
	perCell = 10                       // minimum width of a column, if the picture has room for it
	gapWide = 2
	rowsMax = 160  // maximum lines; the picture omits further lines
	columns = 32   // maximum columns; the picture omits further columns
	cellMax = 2048 // maximum characters per cell of the table; the picture omits the rest of the cell
)

// Draw draws a table with a bold header and with lines between the rows. If the text of a cell is too wide, it takes
// several lines.
func Draw(theme picture.Theme, t render.Table) ([]byte, error) {
	t = bounded(t)
	widths := fit(t)
	total := gapWide * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	var rows [][]string // lines of the picture, with one string per column
	var heads []int     // indexes of the lines that begin a row of the table
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

// bounded shortens a table to the limits of a picture, and marks omissions with "…". Without these limits, ductor could
// need a long time to draw a huge table.
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

// shortened shortens the text of a cell to cellMax characters.
func shortened(cell string) string {
	n := 0
	for at := range cell {
		if n++; n > cellMax {
			return cell[:at] + "…"
		}
	}
	return cell
}

// fit returns the widths of the columns. A column is as wide as its widest cell. If the picture would be too wide, the
// widest columns become narrower.
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

// lines breaks the cells of a row into lines, at spaces if possible.
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
