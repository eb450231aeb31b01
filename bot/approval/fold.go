package approval

import (
	"fmt"
	"strings"

	"ductor/bot/render"
	"ductor/lang"
)

// Bounds of white space. More of it pushes text out of view.
const (
	newlinesMost = 3
	blanksMost   = 40
)

// folded is s with long runs of white space counted instead of shown, and whether there were any.
func folded(s string) (text string, cut bool) {
	var b strings.Builder
	for s != "" {
		run := len(s) - len(strings.TrimLeft(s, " \n"))
		if run == 0 {
			next := strings.IndexAny(s, " \n")
			if next < 0 {
				next = len(s)
			}
			b.WriteString(s[:next])
			s = s[next:]
			continue
		}
		blank, long := foldedRun(s[:run])
		b.WriteString(blank)
		s, cut = s[run:], cut || long
	}
	return b.String(), cut
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

// short is s on one line, with what cannot be seen written out, and without its end where it is longer than limit.
func short(s string, limit int) string {
	return render.ShortLine(render.Revealed(s), limit)
}

// inLine is s on one line, with its line breaks and long runs of blanks written out. False if it says less than s.
func inLine(s string, limit int) (string, bool) {
	s, cut := folded(strings.TrimSpace(render.Revealed(s)))
	s = strings.ReplaceAll(s, "\n", "⏎")
	short := render.ShortenPlain(s, limit)
	return short, !cut && short == s
}

// linesMost is how many lines of a text the chat shows before it cuts its middle out.
const linesMost = 40

// middle takes the middle out of s when it is longer than limit, or has too many lines. The end stays: what matters
// in a command may stand there.
func middle(p lang.Printer, s string, limit int) (string, bool) {
	s, cut := folded(s)
	if lines := strings.Split(s, "\n"); len(lines) > linesMost {
		const tail = linesMost / 3
		head := linesMost - tail
		hidden := p.Text("approval.lines-hidden", len(lines)-linesMost)
		s = strings.Join(lines[:head], "\n") + "\n" + hidden + "\n" + strings.Join(lines[len(lines)-tail:], "\n")
		cut = true
	}
	if render.Len(s) <= limit {
		return s, cut
	}
	runes := []rune(s)
	limit = max(limit-50, 0) // for the line about it
	head, tail := limit*2/3, limit/3
	// Characters beyond the basic plane count twice; then a little less is shown.
	if len(runes) < render.Len(s) {
		head, tail = head/2, tail/2
	}
	left := len(runes) - head - tail
	return string(runes[:head]) + "\n" + p.Text("approval.characters-hidden", left) + "\n" + string(runes[len(runes)-tail:]), true
}
