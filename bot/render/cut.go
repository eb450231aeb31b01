package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cuts contains positions at which a text can be cut. Each field contains the last position of one kind, as an offset
// in bytes. 0 means that there is no such position.
type cuts struct {
	paragraph int // offset of the last empty line outside of code
	line      int // offset of the last line end outside of code
	codeLine  int // offset of the last line end in code
	sentence  int
	word      int
}

// cut returns the length of the next part in bytes. window contains all text that fits into the part. More text follows
// after window. cut prefers the end of a paragraph or line to the end of a sentence or word, unless the part would be
// too short.
func (s *splitter) cut(window string) int {
	c := s.find(window)
	half, quarter, little := len(window)/2, len(window)/4, len(window)/16
	for _, choice := range []struct{ at, least int }{
		{c.paragraph, half}, {c.line, half}, {c.paragraph, quarter}, {c.codeLine, half}, {c.line, quarter},
		{c.sentence, quarter}, {c.codeLine, quarter}, {c.word, quarter},
		{c.line, little}, {c.codeLine, little}, {c.word, little},
	} {
		if choice.at > choice.least {
			return choice.at
		}
	}
	if n := charBoundary(s.text[s.bytes:], len(window)); n > 0 && !IsBlank(window[:n]) {
		return n
	}
	return len(window)
}

// find returns the last position of each kind at which window can be cut. All positions are after the first visible
// character.
func (s *splitter) find(window string) cuts {
	var c cuts
	w := cursor{text: window}
	w.take(s.visible + 1)
	next := 0
	codeEnd := 0 // end of the last code entity before the position, as a UTF-16 offset
	prev := ' '
	for i := w.bytes; i <= len(window); {
		unit := s.units + w.units
		for ; next < len(s.entities) && s.entities[next].Offset < unit; next++ {
			if s.entities[next].Kind.raw() {
				codeEnd = max(codeEnd, s.entities[next].End())
			}
		}
		r, size := rune(0), 0
		if at := s.bytes + i; at < len(s.text) {
			if r, size = rune(s.text[at]), 1; r >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(s.text[at:])
			} else if r > ' ' && prev < utf8.RuneSelf { // inside a word, no cut is possible
				prev = r
				i++
				w.units++
				continue
			}
		}
		c.note(i, prev, r, unit < codeEnd, s.text[s.bytes+i:])
		prev = r
		i += size
		w.units += runeUnits(r)
		if size == 0 {
			break
		}
	}
	return c
}

// note records pos if the text can be cut at that position. prev and r are the characters before and after pos, and
// rest is the text from r on. code is true if pos is inside code.
func (c *cuts) note(pos int, prev, r rune, code bool, rest string) {
	switch {
	case r == '\n' && code:
		c.codeLine = pos
	case r == '\n' && prev != '\n':
		c.line = pos
		if strings.HasPrefix(strings.TrimLeft(rest[1:min(len(rest), 64)], " "), "\n") {
			c.paragraph = pos
		}
	case r == ' ' && prev != ' ':
		c.word = pos
		switch prev {
		case '.', '!', '?', '…', ':', ';':
			if !code {
				c.sentence = pos
			}
		}
	case !code && (prev == '。' || prev == '！' || prev == '？'):
		c.sentence, c.word = pos, pos
	}
}

// charBoundary returns the last position, at or before byte n of s, that does not split a visible character. For
// example, an emoji can consist of several code points. charBoundary returns 0 if there is no such position near n.
func charBoundary(s string, n int) int {
	const furthest = 256
	for i := n; i > 0 && i > n-furthest; {
		if !joins(s, i) {
			return i
		}
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return 0
}

// charCut is like charBoundary, but its parameter and result are in UTF-16 units. If charBoundary finds no position,
// charCut returns the last position between two code points.
func charCut(s string, units int) int {
	c := cursor{text: s}
	for {
		next := c
		next.take(c.units + 1)
		if next.units > units || next.bytes == c.bytes {
			break
		}
		c = next
	}
	if n := charBoundary(s, c.bytes); n > 0 {
		return Len(s[:n])
	}
	return c.units
}

// joins reports whether the code points before and after byte i of s form one visible character.
func joins(s string, i int) bool {
	if i == 0 || i == len(s) {
		return false
	}
	prev, _ := utf8.DecodeLastRuneInString(s[:i])
	next, _ := utf8.DecodeRuneInString(s[i:])
	const joiner = 0x200d
	switch {
	case next == joiner || prev == joiner:
		return true
	case next >= 0x1f3fb && next <= 0x1f3ff, next >= 0xe0020 && next <= 0xe007f:
		return true
	case regional(prev) && regional(next):
		return flagsBefore(s[:i])%2 == 1
	case hangulPart(next) && (hangulPart(prev) || prev >= 0x1100 && prev < 0x1160 || prev >= 0xac00 && prev <= 0xd7a3):
		return true
	}
	return unicode.In(next, unicode.Mn, unicode.Me, unicode.Mc)
}

func regional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// flagsBefore returns the number of regional indicators at the end of s. The emoji of a flag consists of two of them.
func flagsBefore(s string) int {
	n := 0
	for n < 64 {
		r, size := utf8.DecodeLastRuneInString(s)
		if !regional(r) {
			break
		}
		s = s[:len(s)-size]
		n++
	}
	return n
}

// hangulPart reports whether r is a vowel or final consonant that combines with the character before it to a Korean
// syllable.
func hangulPart(r rune) bool { return r >= 0x1160 && r <= 0x11ff }
