package approval

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"ductor/bot/render"
	"ductor/lang"
)

// Maximum number of line breaks or spaces in a row. With more of them, a request could hide text from the user.
const (
	newlinesMost = 3
	blanksMost   = 40
)

var blankRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[ \n]{2,}`) })

// folded replaces each long sequence of white space by a description with its length. It reports whether it replaced
// any sequence.
func folded(s string) (text string, cut bool) {
	text = blankRun().ReplaceAllStringFunc(s, func(run string) string {
		shown, long := foldedRun(run)
		cut = cut || long
		return shown
	})
	return text, cut
}

func foldedRun(run string) (string, bool) {
	last := strings.LastIndexByte(run, '\n')
	indent := run[last+1:]
	lines, cut := run[:last+1], false
	if n := strings.Count(lines, "\n"); n > newlinesMost || len(lines)-n > blanksMost {
		lines, cut = fmt.Sprintf("\n⏎ ×%d\n", n), true
	}
	if n := len(indent); n > blanksMost {
		indent, cut = fmt.Sprintf(" ␣ ×%d ", n), true
	}
	return lines + indent, cut
}

// short returns s on one line and shortened to limit. Invisible characters are replaced by visible escapes.
func short(s string, limit int) string {
	return render.ShortLine(render.Revealed(s), limit)
}

// inLine is like short, but also makes line breaks and long sequences of spaces visible. It returns false if the line
// does not contain all of s.
func inLine(s string, limit int) (string, bool) {
	s, cut := folded(strings.TrimSpace(render.Revealed(s)))
	s = strings.ReplaceAll(s, "\n", "⏎")
	short := render.ShortenPlain(s, limit)
	return short, !cut && short == s
}

// maxLines is the maximum number of lines in a text that is not shown in full.
const maxLines = 40

// middle replaces the middle of a long text by a line with the length of the hidden part. It keeps the end, because the
// end of a command can be the dangerous part. It reports whether anything is hidden.
func middle(p lang.Printer, s string, limit int) (string, bool) {
	s, cut := folded(s)
	if lines := strings.Split(s, "\n"); len(lines) > maxLines {
		const tail = maxLines / 3
		head := maxLines - tail
		hidden := p.Text("approval.lines-hidden", len(lines)-maxLines)
		s = strings.Join(lines[:head], "\n") + "\n" + hidden + "\n" + strings.Join(lines[len(lines)-tail:], "\n")
		cut = true
	}
	if render.Len(s) <= limit {
		return s, cut
	}
	runes := []rune(s)
	limit = max(limit-50, 0) // reserve space for the line with the length of the hidden part
	head, tail := limit*2/3, limit/3
	// limit counts UTF-16 units, and a character consists of one or two of them. If s has characters of two units, keep
	// only half as many characters.
	if len(runes) < render.Len(s) {
		head, tail = head/2, tail/2
	}
	left := len(runes) - head - tail
	hidden := p.Text("approval.characters-hidden", left)
	return string(runes[:head]) + "\n" + hidden + "\n" + string(runes[len(runes)-tail:]), true
}
