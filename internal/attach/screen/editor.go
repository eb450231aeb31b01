package screen

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// editor is an input field. The cursor is between before and after.
type editor struct{ before, after string }

func (e *editor) text() string { return e.before + e.after }

// insert adds typed or pasted text, without control characters.
func (e *editor) insert(text string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(strings.ToValidUTF8(text, ""))
	e.before += strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// key handles a key. It returns false if the key does nothing in an input field.
func (e *editor) key(name string) bool {
	switch name {
	case "backspace", "ctrl+h":
		e.before = e.before[:lastCluster(e.before)]
	case "delete", "ctrl+d":
		e.after = e.after[firstCluster(e.after):]
	case "left", "ctrl+b":
		i := lastCluster(e.before)
		e.before, e.after = e.before[:i], e.before[i:]+e.after
	case "right", "ctrl+f":
		i := firstCluster(e.after)
		e.before, e.after = e.before+e.after[:i], e.after[i:]
	case "home", "ctrl+a":
		i := strings.LastIndexByte(e.before, '\n') + 1
		e.before, e.after = e.before[:i], e.before[i:]+e.after
	case "end", "ctrl+e":
		line, _, _ := strings.Cut(e.after, "\n")
		e.before, e.after = e.before+line, e.after[len(line):]
	case "ctrl+w", "alt+backspace":
		e.before = e.before[:lastWord(e.before)]
	case "alt+left", "ctrl+left", "alt+b":
		i := lastWord(e.before)
		e.before, e.after = e.before[:i], e.before[i:]+e.after
	case "alt+right", "ctrl+right", "alt+f":
		rest := strings.TrimLeftFunc(e.after, unicode.IsSpace)
		if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
			rest = rest[i:]
		} else {
			rest = ""
		}
		e.before, e.after = e.before+e.after[:len(e.after)-len(rest)], rest
	case "ctrl+u":
		e.before = ""
	case "ctrl+k":
		e.after = ""
	case "alt+enter", "shift+enter", "ctrl+j":
		e.before += "\n"
	default:
		return false
	}
	return true
}

// firstCluster returns the length of the first grapheme cluster (a character on the screen) in bytes.
func firstCluster(s string) int {
	_, _, n, _ := ansi.DecodeSequence(s, ansi.NormalState, nil)
	return n
}

// lastCluster returns the byte offset at which the last grapheme cluster begins.
func lastCluster(s string) int {
	line := strings.LastIndexByte(s[:max(len(s)-1, 0)], '\n') + 1
	for i := line; ; {
		n := firstCluster(s[i:])
		if n == 0 || i+n >= len(s) {
			return i
		}
		i += n
	}
}

func lastWord(s string) int {
	return strings.LastIndexFunc(strings.TrimRightFunc(s, unicode.IsSpace), unicode.IsSpace) + 1
}

// layout returns the rows of the text and the position of the cursor.
func (e *editor) layout(look Look, secret bool) (rows []string, x, y int) {
	shown := func(s string) string {
		if secret {
			return strings.Repeat("*", len([]rune(s)))
		}
		return look.clean(s)
	}
	before := wrap(shown(e.before), look.Width, anywhere)
	y, x = len(before)-1, ansi.StringWidth(before[len(before)-1])
	if x == look.Width {
		x, y = 0, y+1
	}
	rows = wrap(shown(e.text()), look.Width, anywhere)
	for y >= len(rows) {
		rows = append(rows, "")
	}
	return rows, x, y
}
