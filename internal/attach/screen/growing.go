package screen

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Limits of a text on the screen. The chat and /sessions show the whole text.
const (
	mostText = 128 << 10 // bytes of a text
	mostLine = 4 << 10   // bytes of a line; longer lines are split
)

// growing is a text that grows while ductor sends it. It keeps the rows of all complete lines. So after more text
// arrives, it only computes the rows of the last line again.
type growing struct {
	how   wrapping
	style func(line string) style // nil for a text without styles
	text  []byte                  // the received text, at most mostText bytes

	look          Look // size and style of the screen for which the rows were computed
	completeBytes int  // number of bytes of the text that belong to complete lines
	completeRows  int  // number of rows (lines of the screen) of the complete lines of the text
	rows          []row
}

// row is a row of the screen without escape codes.
type row struct {
	style style
	text  string
}

// append adds text at the end. If the text becomes too long, it drops the oldest lines.
func (g *growing) append(text string) {
	g.text = append(g.text, text...)
	if len(g.text) <= 2*mostText {
		return
	}
	drop := len(g.text) - mostText
	if end := bytes.IndexByte(g.text[drop:], '\n'); end >= 0 && end < mostLine {
		drop += end + 1
	}
	g.text = bytes.Clone(g.text[drop:])
	g.forget()
}

func (g *growing) truncate(n int) {
	g.text = g.text[:max(len(g.text)-n, 0)]
	if len(g.text) < g.completeBytes {
		g.forget()
	}
}

func (g *growing) set(text string) {
	if string(g.text) != text {
		g.truncate(len(g.text))
		g.append(text)
	}
}

func (g *growing) forget() { g.rows, g.completeBytes, g.completeRows = nil, 0, 0 }

// lines returns the rows of the text, without empty rows at the end. The result is valid until the next call.
func (g *growing) lines(look Look) []row {
	if look.Height = 0; look != g.look {
		g.forget()
		g.look = look
	}
	g.rows = g.rows[:g.completeRows]
	for {
		line, whole := nextLine(g.text[g.completeBytes:])
		if !whole {
			break
		}
		g.rows = append(g.rows, g.breakLine(strings.TrimSuffix(string(line), "\n"))...)
		g.completeBytes, g.completeRows = g.completeBytes+len(line), len(g.rows)
	}
	if rest := g.text[g.completeBytes:]; len(rest) > 0 {
		g.rows = append(g.rows, g.breakLine(string(rest))...)
	}
	rows := g.rows
	for len(rows) > 0 && strings.TrimSpace(rows[len(rows)-1].text) == "" {
		rows = rows[:len(rows)-1]
	}
	return rows
}

func (g *growing) breakLine(line string) []row {
	line = g.look.clean(line)
	of := normal
	if g.style != nil {
		of = g.style(line)
	}
	var rows []row
	for _, text := range wrap(line, g.look.Width, g.how) {
		rows = append(rows, row{of, text})
	}
	return rows
}

// nextLine returns the first line of a text, and reports whether the line is complete.
func nextLine(text []byte) ([]byte, bool) {
	limit := min(len(text), mostLine)
	for i, c := range text[:limit] {
		if c == '\n' {
			return text[:i+1], true
		}
	}
	if len(text) <= mostLine {
		return text, false
	}
	for limit > mostLine-utf8.UTFMax && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit], true
}
