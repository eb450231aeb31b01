package sub

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Plain returns a writer to out. If out is a terminal, the writer replaces control characters except line breaks and
// tabs, because a text of an agent or a container could otherwise control the terminal. It also escapes invisible
// characters, such as marks that reverse the direction of text. Other outputs get each byte unchanged.
func Plain(out *os.File) io.Writer {
	if term.IsTerminal(int(out.Fd())) {
		return &plainWriter{out: out}
	}
	return out
}

// plainWriter removes control characters from a text. It is safe for concurrent use.
type plainWriter struct {
	out io.Writer

	mu   sync.Mutex
	rest []byte // the beginning of a character whose end has not been written yet
}

func (w *plainWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	whole := len(text) - incomplete(text)
	w.rest = bytes.Clone(text[whole:])
	if _, err := w.out.Write(plain(text[:whole], '\n', '\t')); err != nil {
		return 0, err
	}
	return len(p), nil
}

// incomplete returns the number of bytes at the end of a text that begin a character without completing it.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// PlainLine returns a text of an agent for one line of output, for example for a cell of a table. It replaces control
// characters by spaces, and escapes invisible characters.
func PlainLine(text string) string { return string(plain([]byte(text))) }

func plain(text []byte, kept ...rune) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		switch {
		case slices.Contains(kept, r):
			out.WriteRune(r)
		case unicode.IsControl(r):
			out.WriteByte(' ')
		case Unseen(r):
			fmt.Fprintf(&out, "\\u%04x", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// Unseen reports whether a terminal may show no sign of the character.
func Unseen(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}
