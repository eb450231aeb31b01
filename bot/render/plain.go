package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"ductor/lang"
)

// Limits of a message, in UTF-16 units.
const (
	MessageLimit = 4096 // Telegram's limit
	CaptionLimit = 1024 // Telegram's limit for the text below a file
	FullMessage  = 4000 // maximum length of a message if another message follows
)

// ShortenPlain cuts s to at most limit UTF-16 units.
func ShortenPlain(s string, limit int) string { return Shorten(Plain(s), limit).Text }

// ShortLine returns s as a single line of at most limit UTF-16 units.
func ShortLine(s string, limit int) string { return ShortenPlain(OneLine(s), limit) }

// OneLine returns s as a single line: each run of white space becomes one blank.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Cut returns at most the first limit characters of s. If it cuts anything, it appends an ellipsis.
func Cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + " […]"
		}
	}
	return s
}

// LastLines returns the end of a text, at most `most` UTF-16 units. If possible, the result starts at the beginning
// of a line.
func LastLines(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most/2 || Len(text) <= most {
		return text
	}
	end := string(runes[max(len(runes)-most/2, 0):]) // a character takes at most two units
	if _, whole, ok := strings.Cut(end, "\n"); ok && whole != "" {
		end = whole
	}
	return "…\n" + end
}

// Unchanged returns s as a Text without markup. Unlike Plain, it does not replace characters that Telegram may
// change.
func Unchanged(s string) Text { return Text{Text: s} }

// ForeignRepository explains that Git does not work in a directory of another user of the machine, and how to fix that.
func ForeignRepository(p lang.Printer, dir string) string {
	dir = Revealed(dir)
	return p.Text("common.foreign-repository", dir, "'"+strings.ReplaceAll(dir, "'", `'\''`)+"'")
}

// Revealed returns s in a form that Telegram shows unchanged. It spells out characters that are invisible, look like
// a space or change the appearance of others, so that users see everything that they allow.
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
	return Plain(b.String()).Text // so that the caller measures the text as Telegram shows it
}

// hidden reports whether a character must be spelled out.
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

// Fingerprint returns a short digest of a text, for storage in place of the text.
func Fingerprint(t Text) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %+v", t.Text, t.Entities)
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// AsMessage removes the parts of t that Telegram would not keep. t must not be longer than a message.
func AsMessage(t Text) Text {
	parts := Split(t, MessageLimit)
	if len(parts) == 0 {
		return Text{}
	}
	whole := parts[0].Text
	for i, p := range parts[1:] {
		// The message has too many addresses. The links beyond the limit become plain text.
		whole = Concat(whole, Text{Text: parts[i].Gap + p.Text.Text})
	}
	return whole
}
