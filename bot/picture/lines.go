package picture

import "strings"

// Run is text in one style.
type Run struct {
	Text   string
	Color  Color // colour of the text; the zero value, Back, means Ink
	Weight Weight
}

// Line is a line of text. The field Below is the background colour of the whole line.
type Line struct {
	Runs  []Run
	Below Color
}

// Draw returns a PNG picture of lines. It cuts off each line after the given number of columns. The caller can break
// long lines with Wrap first.
func Draw(theme Theme, columns int, lines []Line) ([]byte, error) {
	c, err := New(theme, columns, len(lines))
	if err != nil {
		return nil, err
	}
	for row, line := range lines {
		if line.Below != Back {
			c.Band(row, 1, line.Below)
		}
		column := 0
		for _, run := range line.Runs {
			ink := run.Color
			if ink == Back {
				ink = Ink
			}
			column = c.Text(column, row, ink, run.Weight, run.Text)
		}
	}
	return c.PNG()
}

// Wrap breaks a line into lines of at most the given number of columns. All lines after the first one begin with
// indent. A tab becomes spaces, up to the next multiple of four columns.
func Wrap(line Line, columns int, indent ...Run) []Line {
	hang := 0
	for _, run := range indent {
		hang += Width(run.Text)
	}
	if hang >= columns {
		indent, hang = nil, 0
	}
	now := Line{Below: line.Below}
	var all []Line
	column := 0
	for _, run := range line.Runs {
		for text := []rune(expand(run.Text, column)); len(text) > 0; {
			if column == columns {
				all = append(all, now)
				now, column = Line{Runs: append([]Run(nil), indent...), Below: line.Below}, hang
			}
			part := text[:min(len(text), columns-column)]
			text = text[len(part):]
			column += len(part)
			now.Runs = append(now.Runs, Run{string(part), run.Color, run.Weight})
		}
	}
	return append(all, now)
}

// Width returns the number of columns that a text takes.
func Width(text string) (n int) {
	for _, r := range text {
		if !invisible(r) {
			n++
		}
	}
	return n
}

// expand removes invisible characters and replaces tabs by spaces. column is the column at which the text starts.
func expand(text string, column int) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\t':
			n := 4 - column%4
			out.WriteString(strings.Repeat(" ", n))
			column += n
		case !invisible(r):
			out.WriteRune(r)
			column++
		}
	}
	return out.String()
}
