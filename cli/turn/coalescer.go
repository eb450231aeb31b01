package turn

import (
	"strings"
	"time"
	"unicode/utf8"
)

// CoalescerOptions say when gathered text is worth showing. Characters are Unicode code points.
type CoalescerOptions struct {
	MinChars   int           // less than this waits for Idle; at least 1
	MaxChars   int           // this much is due at once; 0 is no such limit
	Idle       time.Duration // silence after which whatever there is is due
	Sentences  bool          // from MinChars on, the end of a sentence is due at once
	Paragraphs bool          // likewise the end of a paragraph
}

// Coalescer gathers the text deltas of one turn into pieces worth showing. It is a plain value without
// goroutines or clock: the caller says what time it is, and asks when the next piece is due. The pieces
// joined are what was added, and no piece but the last of all ends inside a character.
// Not safe for concurrent use.
type Coalescer struct {
	opts    CoalescerOptions
	pending []byte
	chars   int // characters begun in pending
	last    time.Time
	taken   bool // a piece was taken before
}

// NewCoalescer makes the Coalescer of one turn.
func NewCoalescer(opts CoalescerOptions) *Coalescer {
	opts.MinChars = max(opts.MinChars, 1)
	return &Coalescer{opts: opts}
}

// Add gathers text that came at the given time.
func (c *Coalescer) Add(text string, at time.Time) {
	if text == "" {
		return
	}
	for i := range len(text) {
		if utf8.RuneStart(text[i]) {
			c.chars++
		}
	}
	c.pending = append(c.pending, text...)
	c.last = at
}

// Due says when a piece is due if nothing more comes; a time that is not in the future means now.
// It is false when there is no whole character to take.
func (c *Coalescer) Due() (at time.Time, ok bool) {
	if len(c.pending) == incompleteTail(c.pending) {
		return time.Time{}, false
	}
	if c.ripe() {
		return c.last, true
	}
	return c.last.Add(c.opts.Idle), true
}

// ripe says whether what there is need not wait for more. The first piece of a turn is due early: it
// tells people that the agent is at work.
func (c *Coalescer) ripe() bool {
	switch {
	case c.opts.MaxChars > 0 && c.chars >= c.opts.MaxChars:
		return true
	case c.chars < c.opts.MinChars:
		return false
	default:
		return !c.taken || c.opts.Sentences && endsSentence(c.pending) || c.opts.Paragraphs && endsParagraph(c.pending)
	}
}

// Take removes and returns all whole characters. The bytes of a character that is not whole yet stay.
func (c *Coalescer) Take() string { return c.take(incompleteTail(c.pending)) }

// TakeAll removes and returns everything, for the end of a turn.
func (c *Coalescer) TakeAll() string { return c.take(0) }

func (c *Coalescer) take(keep int) string {
	cut := len(c.pending) - keep
	piece := string(c.pending[:cut])
	c.pending = append(c.pending[:0], c.pending[cut:]...)
	c.chars = min(keep, 1)
	c.taken = c.taken || piece != ""
	return piece
}

// incompleteTail is how many bytes at the end of b begin a character that may still be completed.
func incompleteTail(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				return 0
			}
			return len(b) - i
		}
	}
	return 0
}

// lookBack is how far an end is looked for, so that Due costs the same for any amount of text.
const lookBack = 32

// endsSentence looks behind closing quotes, brackets, emphasis and spaces for the mark of an end.
func endsSentence(b []byte) bool {
	s := strings.TrimRight(string(b[max(0, len(b)-lookBack):]), " \t\n\"'”’»)]*_`")
	last, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(".!?…:。！？", last)
}

// endsParagraph says whether b ends in a blank line.
func endsParagraph(b []byte) bool {
	s := string(b[max(0, len(b)-lookBack):])
	blank := s[len(strings.TrimRight(s, " \t\r\n")):]
	return strings.Count(blank, "\n") >= 2
}
