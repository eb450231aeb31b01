package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"ductor/lang"
)

// Bounds of a message in UTF-16 units.
const (
	MessageLimit = 4096 // Telegram's
	CaptionLimit = 1024 // likewise, of the text below a file
	FullMessage  = 4000 // where a message ends that is followed by another
)

// ShortenPlain cuts s to at most limit UTF-16 units.
func ShortenPlain(s string, limit int) string { return Shorten(Plain(s), limit).Text }

// ShortLine cuts s as a single line to at most limit UTF-16 units.
func ShortLine(s string, limit int) string { return ShortenPlain(OneLine(s), limit) }

// OneLine is s as a single line: each run of white space becomes one blank.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Cut keeps the first characters of s, at most limit, and says so behind them.
func Cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + " […]"
		}
	}
	return s
}

// LastLines is the end of a text of at most so many UTF-16 units, from the beginning of a line on where there is one.
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

// Unchanged is s without markup, as it is: Telegram may change some of its characters, which Plain does first.
func Unchanged(s string) Text { return Text{Text: s} }

// ForeignRepository says that Git does not work in a directory of another user of the machine, and what to do.
func ForeignRepository(p lang.Printer, dir string) string {
	dir = Revealed(dir)
	return p.Text("common.foreign-repository", dir, "'"+strings.ReplaceAll(dir, "'", `'\''`)+"'")
}

// Revealed is s as the chat keeps it. Characters that cannot be seen, that look like a space or that change what is
// seen are written out: a user must see all that they allow.
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
	return Plain(b.String()).Text // measured as it will be shown
}

// hidden says whether a character cannot be seen for what it is.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == ' ':
		return false
	case r < 0x7f:
		return r < 0x20
	case r == 0x2800, r == 0xfffc: // a blank of Braille, and a place for a picture
		return true
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Co,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Fingerprint stands for a text where keeping the text would be too much.
func Fingerprint(t Text) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %+v", t.Text, t.Entities)
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// AsMessage takes off t what Telegram would not keep. t is as long as a message may be.
func AsMessage(t Text) Text {
	parts := Split(t, MessageLimit)
	if len(parts) == 0 {
		return Text{}
	}
	whole := parts[0].Text
	for i, p := range parts[1:] {
		// More addresses than a message can hold: those that go beyond lose their links.
		whole = Concat(whole, Text{Text: parts[i].Gap + p.Text.Text})
	}
	return whole
}
