package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ductor/cli"
)

// cleanRune returns the character that Telegram would show for r, or false if Telegram drops r. Telegram turns control
// characters into spaces, and drops characters that change the writing direction. ductor must do the same before it
// sends a text: if Telegram dropped a character, the offsets of entities would be wrong.
func cleanRune(r rune) (rune, bool) {
	switch {
	case r == '\n':
		return r, true
	case r == 0:
		return utf8.RuneError, true
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029:
		return ' ', true
	case r >= 0x202a && r <= 0x202e:
		return 0, false
	}
	return r, true
}

// tab replaces a tab. Telegram would turn a tab into a single space, and code would lose its indentation.
const tab = "    "

// appendClean appends s to dst as Telegram would show it. Invalid UTF-8 becomes U+FFFD.
func appendClean(dst []byte, s string) []byte {
	if isClean(s) {
		return append(dst, s...)
	}
	for _, r := range s {
		if r == '\t' {
			dst = append(dst, tab...)
		} else if r, ok := cleanRune(r); ok {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

func isClean(s string) bool {
	ascii := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 && c != '\n' || c == 0x7f {
			return false
		} else if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	if ascii {
		return true
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
		if c, ok := cleanRune(r); c != r || !ok {
			return false
		}
	}
	return true
}

// cleanSource prepares Markdown for the parser. It removes invalid UTF-8, control characters and carriage returns. If
// the output of a program overwrites a line, cleanSource keeps only the final text of the line, as a terminal does. It
// keeps tabs, because they can be indentation. The number of lines does not change.
func cleanSource(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range cli.WithoutCodes(s) {
		if r == '\t' {
			b.WriteByte('\t')
		} else if c, ok := cleanRune(r); ok {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// trimmed reports whether Telegram removes c from the start and the end of a message.
func trimmed(c byte) bool { return c == ' ' || c == '\n' }

// blank reports whether r is invisible. Telegram rejects a message that contains only such characters.
func blank(r rune) bool {
	switch {
	case r == ' ' || r == '\n':
		return true
	case r < 0x80:
		return false
	case r == 0x180e, r >= 0x200b && r <= 0x200f, r >= 0x2060 && r <= 0x206f,
		r == 0x2800, r == 0x3164, r == 0xfeff, r == 0xfffc:
		return true
	}
	return unicode.IsSpace(r)
}

// IsBlank reports whether s consists of invisible characters only.
func IsBlank(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return !blank(r) }) < 0 }
