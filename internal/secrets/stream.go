package secrets

import (
	"strings"
	"unicode/utf8"
)

// Stream removes secrets from a text that grows, and may shrink, at its end. It holds back the end of the text while
// this end may be the beginning of a secret. Not safe for concurrent use.
type Stream struct {
	raw  []byte
	out  []byte
	done int // later input cannot change the output for raw[:done]
	sent int // number of bytes in the output for raw[:done]
}

// Change describes how the output changes: remove Retract bytes from its end, and then append Text.
type Change struct {
	Retract int
	Text    string
}

// Add appends text to the input.
func (s *Stream) Add(set *Set, text string) Change {
	s.raw = append(s.raw, text...)
	return s.update(set, holdBack)
}

// Retract removes the given number of bytes from the end of the input. If this is more than the input of the Stream,
// the other bytes went to an earlier Stream. Change.Retract then includes these bytes.
func (s *Stream) Retract(set *Set, bytes int) Change {
	before := max(bytes-len(s.raw), 0)
	s.raw = s.raw[:len(s.raw)-bytes+before]
	if len(s.raw) < s.done {
		s.done, s.sent = 0, 0
	}
	c := s.update(set, holdBack)
	c.Retract += before
	return c
}

// Flush outputs the text that the Stream holds back, because no more input is expected. If the held text is at least
// half of a secret, Flush outputs Removed instead.
func (s *Stream) Flush(set *Set) Change { return s.update(set, flushAll) }

// flushMode selects what to output if the text ends with the possible beginning of a secret.
type flushMode int

const (
	holdBack flushMode = iota
	flushAll
)

func (s *Stream) update(set *Set, e flushMode) Change {
	c := set.clean(string(s.raw[s.done:]))
	given := string(s.out[s.sent:])
	text := c.text
	if c.half && e == flushAll {
		text = c.text[:c.held] + Removed
	}
	if e == holdBack {
		text = c.text[:c.held]
		if strings.HasPrefix(given, text) && strings.HasPrefix(c.text, given) {
			text = given // do not remove text that Flush has already output
		}
	}
	same := commonPrefix(given, text)
	s.out = append(s.out[:s.sent+same], text[same:]...)
	s.done, s.sent = s.done+c.done, s.sent+c.sent
	return Change{Retract: len(given) - same, Text: text[same:]}
}

// cleaned is the result of Set.clean for a text whose end may be incomplete.
type cleaned struct {
	text string
	held int  // offset in text of the possible beginning of a secret; len(text) if there is none
	half bool // text[held:] has at least half of the length of a secret
	done int  // later input cannot change the output for the first `done` bytes of the input
	sent int  // number of bytes in the output for the first `done` bytes of the input
}

func (s *Set) clean(raw string) (c cleaned) {
	if s == nil {
		return cleaned{text: raw, held: len(raw), done: len(raw), sent: len(raw)}
	}
	var b strings.Builder
	b.Grow(len(raw))
	c.held = -1
	for i := 0; i < len(raw); {
		if i+s.longest <= len(raw) {
			c.done, c.sent = i, b.Len()
		}
		if !s.mayBegin(raw[i]) {
			b.WriteByte(raw[i])
			i++
			continue
		}
		n := s.matchAt(raw[i:])
		if n > 0 && c.held < 0 && n < s.longest && s.mayBePrefix(raw[i:]) {
			c.held = b.Len() // the rest may be the beginning of a longer secret
		}
		if n > 0 {
			b.WriteString(Removed)
			i += n
			continue
		}
		if c.held < 0 && s.mayBePrefix(raw[i:]) {
			c.held, c.half = b.Len(), s.isHalf(raw[i:])
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

// commonPrefix returns the length of the longest common prefix that does not split a UTF-8 character.
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
