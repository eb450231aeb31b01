package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ductor/cli"
)

// cleanRune is what Telegram makes of a character: it turns tabs and controls into single spaces and drops
// line separators and direction overrides. Done here first, because what it drops would shift entities.
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

// tab is what a tab becomes: Telegram would make one space of it, and code would lose its shape.
const tab = "    "

// appendClean appends s to dst as Telegram keeps it; invalid UTF-8 becomes U+FFFD.
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

// cleanSource prepares Markdown for the parser, which must not see invalid UTF-8, controls or carriage
// returns. What a program printed stays as a terminal shows it. Tabs stay: they mean indentation. Lines are kept: line n of the
// result is line n of s.
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

// trimmed says that Telegram drops c at the edges of a message.
func trimmed(c byte) bool { return c == ' ' || c == '\n' }

// blank says that a character shows nothing: a message of nothing else is refused as empty.
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

// IsBlank says whether nothing would be seen of a text in Telegram.
func IsBlank(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return !blank(r) }) < 0 }
