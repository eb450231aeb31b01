package approval

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"ductor/bot/render"
	"ductor/lang"
)

// Bounds of white space. More white space would push text out of view.
const (
	newlinesMost = 3
	blanksMost   = 40
)

var blankRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[ \n]{2,}`) })

// folded replaces long runs of white space in s by their count. It reports whether it found any.
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

// short returns s on one line, with invisible characters written out, and cut at limit.
func short(s string, limit int) string {
	return render.ShortLine(render.Revealed(s), limit)
}

// inLine returns s on one line, with its line breaks and long runs of blanks written out. It returns false if that
// shows less than s.
func inLine(s string, limit int) (string, bool) {
	s, cut := folded(strings.TrimSpace(render.Revealed(s)))
	s = strings.ReplaceAll(s, "\n", "⏎")
	short := render.ShortenPlain(s, limit)
	return short, !cut && short == s
}

// maxLines is how many lines of a text the chat shows before its middle is cut.
const maxLines = 40

// middle cuts the middle out of s if s is longer than limit or has too many lines. It keeps the end, because the end of
// a command can matter most.
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
	limit = max(limit-50, 0) // for the line about the cut
	head, tail := limit*2/3, limit/3
	// Characters beyond the basic plane count twice, so s is cut a little more.
	if len(runes) < render.Len(s) {
		head, tail = head/2, tail/2
	}
	left := len(runes) - head - tail
	hidden := p.Text("approval.characters-hidden", left)
	return string(runes[:head]) + "\n" + hidden + "\n" + string(runes[len(runes)-tail:]), true
}
