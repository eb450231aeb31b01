package sub

import (
	"bytes"
	"testing"
)

// No text controls the terminal, in whatever pieces it is written.
func TestATerminalGetsPlainText(t *testing.T) {
	text := "a\tb\n\x1b]52;c;eA==\x07\r\u009b2J\x9b2J\u202eé修\xe4\xbf"
	want := "a\tb\n ]52;c;eA==   2J\ufffd2J\\u202eé修"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := &plainWriter{out: &out}
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			if written, err := w.Write(rest[:n]); written != n || err != nil {
				t.Fatalf("it wrote %d bytes of %d: %v", written, n, err)
			}
			rest = rest[n:]
		}
		if out.String() != want {
			t.Errorf("in pieces of %d bytes: %q, want %q", size, out.String(), want)
		}
	}
}
