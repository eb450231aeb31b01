package secrets

import (
	"strings"
	"unicode/utf8"
)

// Stream takes secrets out of a text that grows, and may shrink, at its end. A secret may come in pieces: what may be the
// beginning of one is held back until it is known. It is not safe for concurrent use.
type Stream struct {
	raw  []byte // what was put in
	out  []byte // what was given
	done int    // bytes of raw that can be part of no secret that is not whole
	sent int    // bytes of out that stand for those
}

// Change is what becomes of the text that was given: Retract bytes go from its end, then Text is added.
type Change struct {
	Retract int
	Text    string
}

// Add puts text in.
func (s *Stream) Add(set *Set, text string) Change {
	s.raw = append(s.raw, text...)
	return s.change(set, holdBack)
}

// Retract takes bytes off the end of what was put in. Bytes of before the Stream began count as given.
func (s *Stream) Retract(set *Set, bytes int) Change {
	before := max(bytes-len(s.raw), 0)
	s.raw = s.raw[:len(s.raw)-bytes+before]
	if len(s.raw) < s.done {
		s.done, s.sent = 0, 0
	}
	c := s.change(set, holdBack)
	c.Retract += before
	return c
}

// Flush gives what is held back.
func (s *Stream) Flush(set *Set) Change { return s.change(set, giveAll) }

// ending says what becomes of the beginning of a secret at the end of a text.
type ending int

const (
	holdBack ending = iota
	giveAll
)

func (s *Stream) change(set *Set, e ending) Change {
	c := set.clean(string(s.raw[s.done:]))
	given := string(s.out[s.sent:])
	text := c.text
	if e == holdBack {
		text = c.text[:c.held]
		if strings.HasPrefix(given, text) && strings.HasPrefix(c.text, given) {
			text = given // what was flushed stays
		}
	}
	same := commonPrefix(given, text)
	s.out = append(s.out[:s.sent+same], text[same:]...)
	s.done, s.sent = s.done+c.done, s.sent+c.sent
	return Change{Retract: len(given) - same, Text: text[same:]}
}

// cleaned is a text without secrets.
type cleaned struct {
	text string
	held int // where in it the beginning of a secret may be that is not whole; its length for nowhere
	done int // bytes of the original that are decided, whatever follows
	sent int // bytes of text that stand for them
}

func (s *Set) clean(raw string) (c cleaned) {
	if s == nil {
		return cleaned{raw, len(raw), len(raw), len(raw)}
	}
	var b strings.Builder
	c.held = -1
	for i := 0; i < len(raw); {
		if i+s.longest <= len(raw) {
			c.done, c.sent = i, b.Len()
		}
		n := s.at(raw[i:])
		if n > 0 && c.held < 0 && n < s.longest && s.mayBecome(raw[i:]) {
			c.held = b.Len() // a longer one may begin with this one
		}
		if n > 0 {
			b.WriteString(Removed)
			i += n
			continue
		}
		if c.held < 0 && s.mayBecome(raw[i:]) {
			c.held = b.Len()
		}
		b.WriteByte(raw[i])
		i++
	}
	c.text = b.String()
	if c.held < 0 {
		c.held = len(c.text)
	}
	return c
}

// commonPrefix is the length of the longest common beginning that ends between characters.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}
