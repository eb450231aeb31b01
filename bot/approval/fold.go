package approval

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"ductor/bot/render"
	"ductor/lang"
)

// Limits of white space. Longer runs would push text out of view.
const (
	newlinesMost = 3
	blanksMost   = 40
)

var blankRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[ \n]{2,}`) })

// folded replaces long runs of white space in s by their length. It reports whether it replaced any.
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

// short returns s on one line, with invisible characters spelled out, cut at limit.
func short(s string, limit int) string {
	return render.ShortLine(render.Revealed(s), limit)
}

// inLine returns s on one line, with line breaks and long runs of blanks spelled out. It returns false if it omits a
// part of s.
func inLine(s string, limit int) (string, bool) {
	s, cut := folded(strings.TrimSpace(render.Revealed(s)))
	s = strings.ReplaceAll(s, "\n", "⏎")
	short := render.ShortenPlain(s, limit)
	return short, !cut && short == s
}

// maxLines is the maximum number of lines that the chat shows of a text.
const maxLines = 40

// middle removes the middle of s if s is longer than limit or has too many lines. It preserves the end, because the
// end of a command can matter most. It reports whether it removed anything.
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
	limit = max(limit-50, 0) // room for the line about the cut
	head, tail := limit*2/3, limit/3
	// Characters beyond the basic plane count twice, so cut s a little more.
	if len(runes) < render.Len(s) {
		head, tail = head/2, tail/2
	}
	left := len(runes) - head - tail
	hidden := p.Text("approval.characters-hidden", left)
	return string(runes[:head]) + "\n" + hidden + "\n" + string(runes[len(runes)-tail:]), true
}
