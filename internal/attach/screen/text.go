package screen

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"ductor/bot/render"
	"ductor/cli"
)

// Look describes what a terminal can show.
type Look struct {
	Width, Height int
	ASCII         bool // the terminal does not support UTF-8
	Plain         bool // do not use colours and bold text
}

// style is the parameter of the terminal's escape code for colours and bold text (SGR).
type style string

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

// paint adds a style to text. The text must not contain escape codes.
func (l Look) paint(s style, text string) string {
	if s == normal || l.Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[m"
}

// mark returns a symbol, or the symbol's ASCII substitute if the terminal does not support UTF-8.
func (l Look) mark(mark, ascii string) string {
	if l.ASCII {
		return ascii
	}
	return mark
}

// clean makes text from agents and users safe for a terminal. It removes escape codes, control characters, and
// characters that are invisible or change the direction of text.
func (l Look) clean(text string) string {
	if !harmless(text) {
		text = strings.Map(func(r rune) rune {
			switch {
			case r == '\n':
				return r
			case r < ' ' || r >= 0x7f && r < 0xa0:
				return ' '
			case r == 0x200d: // joiner of emoji
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

// inASCII replaces punctuation with ASCII characters.
var inASCII = strings.NewReplacer("·", "-", "…", "...", "–", "-", "—", "-", "‘", "'", "’", "'", "“", `"`, "”", `"`,
	"•", "*")

// harmless reports whether a text has only printable ASCII characters.
func harmless(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '\n' && (c < ' ' || c >= 0x7f) {
			return false
		}
	}
	return true
}

// reveal returns the text of a request with all invisible characters made visible, because the user must know exactly
// what the request contains.
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

// one cleans a text and shortens it to a single line of at most width columns.
func (l Look) one(text string, width int) string {
	if limit := 1<<10 + 4*max(width, 0); len(text) > limit {
		text = text[:limit] // cleaning more text would cost time, and the rest would not be visible
	}
	text = strings.Join(strings.Fields(l.clean(text)), " ")
	return ansi.Truncate(text, max(width, 0), l.mark("…", "~"))
}

// wrapping determines where long lines are broken.
type wrapping string

const (
	atWords  wrapping = "words"
	anywhere wrapping = "anywhere" // break at any column, so that all blanks remain
)

// wrap breaks cleaned text into rows of at most width columns.
func wrap(text string, width int, how wrapping) []string {
	if len(text) <= width && harmless(text) && !strings.Contains(text, "\n") { // fast path for most lines
		return []string{text}
	}
	if how == atWords {
		text = ansi.Wrap(text, width, "") // ansi.Wrap may return rows that are too wide, for example for "- - - -"
	}
	return strings.Split(ansi.Hardwrap(text, width, true), "\n")
}

// OneLine returns text from agents or users as a short, safe line for a terminal.
func OneLine(text string) string { return Look{}.one(text, 60) }
