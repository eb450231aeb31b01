package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ductor/cli"
)

// cleanRune returns the character that Telegram makes of r, or false if Telegram drops it. Tabs and control
// characters become spaces. Line separators and direction overrides disappear. If Telegram changed characters itself,
// entities would shift.
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

// tab replaces a tab. Telegram would convert a tab to a single space, and code would lose its indentation.
const tab = "    "

// appendClean appends s to dst in the form that Telegram keeps. Invalid UTF-8 becomes U+FFFD.
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

// cleanSource prepares Markdown for the parser. It removes invalid UTF-8, control characters and carriage returns,
// and shows the output of programs as a terminal does. Tabs stay, because they are indentation. Line numbers stay:
// line n of the result is line n of s.
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

// trimmed reports whether Telegram drops c at the edges of a message.
func trimmed(c byte) bool { return c == ' ' || c == '\n' }

// blank reports whether a character is invisible. Telegram rejects a message that has only blank characters.
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

// IsBlank reports whether a text would show nothing in Telegram.
func IsBlank(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return !blank(r) }) < 0 }
