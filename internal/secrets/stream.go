package secrets

import (
	"strings"
	"unicode/utf8"
)

// Stream removes secrets from a text that grows, and may shrink, at its end. It holds back text that may be the
// beginning of a secret. Not safe for concurrent use.
type Stream struct {
	raw  []byte // input
	out  []byte // output so far
	done int    // bytes of raw before the text that is held back
	sent int    // bytes of out that correspond to done
}

// Change updates the output: it removes Retract bytes from the end, and then appends Text.
type Change struct {
	Retract int
	Text    string
}

// Add appends text to the input.
func (s *Stream) Add(set *Set, text string) Change {
	s.raw = append(s.raw, text...)
	return s.update(set, holdBack)
}

// Retract removes bytes from the end of the input. If the input is shorter, the rest belongs to output from before the
// Stream began, and the Change retracts that output, too.
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

// Flush outputs the text that is held back. If the text is at least half of a secret, Flush outputs Removed instead,
// because the text may end there, for example after an abort.
func (s *Stream) Flush(set *Set) Change { return s.update(set, flushAll) }

// flushMode determines how to handle a possible beginning of a secret at the end of the text.
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
			text = given // text that was flushed is not retracted
		}
	}
	same := commonPrefix(given, text)
	s.out = append(s.out[:s.sent+same], text[same:]...)
	s.done, s.sent = s.done+c.done, s.sent+c.sent
	return Change{Retract: len(given) - same, Text: text[same:]}
}

// cleaned is the result of Set.clean.
type cleaned struct {
	text string
	held int  // offset in text of a possible beginning of a secret, or len(text)
	half bool // text[held:] is at least half of that secret
	done int  // bytes of the input that later input cannot change
	sent int  // bytes of text that correspond to done
}

func (s *Set) clean(raw string) (c cleaned) {
	if s == nil {
		return cleaned{text: raw, held: len(raw), done: len(raw), sent: len(raw)}
	}
	var b strings.Builder
	c.held = -1
	for i := 0; i < len(raw); {
		if i+s.longest <= len(raw) {
			c.done, c.sent = i, b.Len()
		}
		n := s.matchAt(raw[i:])
		if n > 0 && c.held < 0 && n < s.longest && s.mayBePrefix(raw[i:]) {
			c.held = b.Len() // a longer secret may begin with this secret
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

// commonPrefix returns the length of the longest common prefix that ends at a character boundary.
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
