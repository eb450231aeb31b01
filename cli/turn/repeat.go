package turn

import (
	"strings"
	"unicode/utf8"
)

// lastWord returns the word at the end of the confirmed answer, or "" if the answer ends between two words. New text
// may continue or change this word, so add retracts the word and emits it again with the new text.
//
// A character that is not ASCII ends the word, because some languages use no spaces.
func (e *Emitter) lastWord() string {
	if len(e.blocks) == 0 {
		return ""
	}
	block := e.text.String()[min(e.blocks[len(e.blocks)-1].start, e.confirmed):e.confirmed]
	at := len(block)
	for at > 0 && block[at-1] < utf8.RuneSelf && !strings.ContainsRune(" \n\t", rune(block[at-1])) {
		at--
	}
	return block[at:]
}

// commonPrefix returns the length of the longest common prefix of a and b that ends at a character boundary.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && a[n]&0xC0 == 0x80 || n < len(b) && b[n]&0xC0 == 0x80) {
		n--
	}
	return n
}
