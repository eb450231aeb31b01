package screen

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"ductor/bot/render"
	"ductor/cli"
)

// Look describes the abilities of a terminal.
type Look struct {
	Width, Height int
	ASCII         bool // the terminal does not understand UTF-8
	Plain         bool // without colours and bold text
}

// style is the parameter of a terminal's SGR code.
type style string

// The styles.
const (
	normal  style = ""
	bold    style = "1"
	faint   style = "2"
	reverse style = "7"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	blue    style = "34"
	cyan    style = "36"
)

// paint adds a style to text, which must not contain escape codes.
func (l Look) paint(s style, text string) string {
	if s == normal || l.Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[m"
}

// mark returns a mark of the screen, or its substitute in ASCII.
func (l Look) mark(mark, ascii string) string {
	if l.ASCII {
		return ascii
	}
	return mark
}

// clean makes text that others wrote safe for a terminal. It returns the text as a terminal would finally show it. It
// removes control characters, and characters that are invisible or change the direction of text.
func (l Look) clean(text string) string {
	if !harmless(text) {
		text = strings.Map(func(r rune) rune {
			switch {
			case r == '\n':
				return r
			case r < ' ' || r >= 0x7f && r < 0xa0:
				return ' '
			case r == 0x200d: // joins emoji
				return r
			case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co):
				return -1
			}
			return r
		}, strings.ReplaceAll(strings.ToValidUTF8(cli.WithoutCodes(text), "\uFFFD"), "\t", "    "))
	}
	if l.ASCII {
		text = strings.Map(func(r rune) rune {
			if r > unicode.MaxASCII {
				return '?'
			}
			return r
		}, inASCII.Replace(text))
	}
	return text
}

// inASCII replaces punctuation that has a substitute in ASCII.
var inASCII = strings.NewReplacer("·", "-", "…", "...", "–", "-", "—", "-", "‘", "'", "’", "'", "“", `"`, "”", `"`,
	"•", "*")

// harmless reports whether a text has only characters of ASCII that a terminal prints.
func harmless(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '\n' && (c < ' ' || c >= 0x7f) {
			return false
		}
	}
	return true
}

// reveal returns a text of a request with every character visible, because the user decides about it.
func (l Look) reveal(text string) string {
	text = strings.ReplaceAll(render.Revealed(strings.ToValidUTF8(text, "\uFFFD")), "\t", "    ")
	if !l.ASCII {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if r <= unicode.MaxASCII {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// one returns a text as a single line of at most width columns.
func (l Look) one(text string, width int) string {
	if limit := 1<<10 + 4*max(width, 0); len(text) > limit {
		text = text[:limit] // a longer one costs time, and shows nothing more
	}
	text = strings.Join(strings.Fields(l.clean(text)), " ")
	return ansi.Truncate(text, max(width, 0), l.mark("…", "~"))
}

// wrapping selects how lines are broken.
type wrapping string

// The ways to break lines.
const (
	atWords  wrapping = "words"
	anywhere wrapping = "anywhere" // keeps every blank
)

// wrap breaks a clean text into rows of at most width columns.
func wrap(text string, width int, how wrapping) []string {
	if len(text) <= width && harmless(text) && !strings.Contains(text, "\n") { // most lines
		return []string{text}
	}
	if how == atWords {
		text = ansi.Wrap(text, width, "") // some texts stay too wide, such as "- - - -"
	}
	return strings.Split(ansi.Hardwrap(text, width, true), "\n")
}

// OneLine returns a text of others as a short line for a terminal.
func OneLine(text string) string { return Look{}.one(text, 60) }
