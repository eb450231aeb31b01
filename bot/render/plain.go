package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"ductor/lang"
)

// Maximum lengths of a message, in UTF-16 units.
const (
	MessageLimit = 4096 // Telegram's limit
	CaptionLimit = 1024 // Telegram's limit for the text below a file
	FullMessage  = 4000 // ductor's limit for a message that another message continues
)

// ShortenPlain shortens s to at most limit UTF-16 units.
func ShortenPlain(s string, limit int) string { return Shorten(Plain(s), limit).Text }

// ShortLine returns s on one line and shortened to limit UTF-16 units.
func ShortLine(s string, limit int) string { return ShortenPlain(OneLine(s), limit) }

// OneLine returns s on one line. Each sequence of white space becomes one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Cut returns the first limit characters of s. If s is longer, Cut appends " […]".
func Cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + " […]"
		}
	}
	return s
}

// LastLines returns the end of a text, at most limit UTF-16 units. If possible, this end starts at the beginning of a
// line.
func LastLines(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit/2 || Len(text) <= limit {
		return text
	}
	end := string(runes[max(len(runes)-limit/2, 0):]) // a character has 1 or 2 UTF-16 units, so these characters fit
	if _, whole, ok := strings.Cut(end, "\n"); ok && whole != "" {
		end = whole
	}
	return "…\n" + end
}

// Unchanged returns s as a Text without formatting. Unlike Plain, it does not replace special characters.
func Unchanged(s string) Text { return Text{Text: s} }

// ForeignRepository returns a text that explains why Git does not work in a directory that belongs to another user of
// the machine, and how to fix that.
func ForeignRepository(p lang.Printer, dir string) string {
	dir = Revealed(dir)
	return p.Text("common.foreign-repository", dir, "'"+strings.ReplaceAll(dir, "'", `'\''`)+"'")
}

// Revealed makes all characters of s visible, so that users can see exactly what they approve. It replaces characters
// by escapes such as \u200b if they are invisible, look like a space, or change how other characters look.
func Revealed(s string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return Plain(b.String()).Text // replace characters as Telegram does, so that callers can measure the length
}

// hidden reports whether Revealed must replace r by an escape.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == ' ':
		return false
	case r < 0x7f:
		return r < 0x20
	case r == 0x2800, r == 0xfffc: // a Braille blank, and a placeholder for a picture
		return true
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Co,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Fingerprint returns a short hash of a text. The hash is stored, so that ductor recognizes the text later.
func Fingerprint(t Text) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s %+v", len(t.Text), t.Text, t.Entities)
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// AsMessage returns t without anything that Telegram would drop. t must fit into one message.
func AsMessage(t Text) Text {
	parts := Split(t, MessageLimit)
	if len(parts) == 0 {
		return Text{}
	}
	whole := parts[0].Text
	for i, p := range parts[1:] {
		// If the message has too many links, the last ones become plain text.
		whole = Concat(whole, Text{Text: parts[i].Gap + p.Text.Text})
	}
	return whole
}
