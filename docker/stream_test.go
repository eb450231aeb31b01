package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

func piece(stream byte, text string) string {
	head := [8]byte{0: stream}
	binary.BigEndian.PutUint32(head[4:], uint32(len(text)))
	return string(head[:]) + text
}

func TestStreamOfAContainer(t *testing.T) {
	for _, c := range []struct{ name, stream, want, wrong string }{
		{"nothing", "", "", ""},
		{"pieces", piece(1, "one ") + piece(1, "") + piece(1, "two"), "one two", ""},
		{"with errors between", piece(1, "one ") + piece(2, "oops") + piece(1, "two"), "one two", ""},
		{"cut in a head", piece(1, "one") + "\x01\x00", "one", "unexpected EOF"},
		{"cut in a piece", piece(1, "one")[:9], "o", ""},
		{"no stream at all", "OCI runtime exec failed: no such file", "", "OCI runtime exec failed"},
		{"an engine that starts nothing", piece(1, "OCI runtime exec failed: exec failed: no room\r\n"), "",
			"no program can be started in the sandbox's container: OCI runtime exec failed: exec failed: no room"},
		{"an engine whose container ends", piece(1, "cannot exec in a stopped state: unknown\r\n"), "",
			"no program can be started in the sandbox's container: cannot exec in a stopped state: unknown"},
		{"a line of a program's", piece(1, "{}\n"), "{}\n", ""},
		{"a frame that ends like a line", piece(1, "b\x00\x00\x00\x02\r\n"), "b\x00\x00\x00\x02\r\n", ""},
		{"an unknown stream", piece(7, "x"), "", "the engine says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := io.ReadAll(&execConn{r: bufio.NewReader(strings.NewReader(c.stream))})
			if string(got) != c.want || (err != nil) != (c.wrong != "") || err != nil &&
				!strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Whatever the engine sends, Read returns no more than it sent. Well-formed pieces that begin like the output of our
// programs are returned completely.
func FuzzExecStream(f *testing.F) {
	f.Add([]byte(piece(1, "one")+piece(2, "x")+piece(1, "two")), 3)
	f.Add([]byte("garbage that is no stream"), 1)
	f.Fuzz(func(t *testing.T, raw []byte, step int) {
		got, _ := io.ReadAll(&execConn{r: bytes.NewReader(raw)})
		if len(got) > len(raw) {
			t.Fatalf("%d bytes of %d", len(got), len(raw))
		}
		raw = append([]byte("W\x00"), raw...)
		step = max(min(step, 1000), 2)
		var whole bytes.Buffer
		for rest := raw; len(rest) > 0; rest = rest[min(step, len(rest)):] {
			whole.WriteString(piece(1, string(rest[:min(step, len(rest))])) + piece(2, "between"))
		}
		got, err := io.ReadAll(&execConn{r: &whole})
		if err != nil || !bytes.Equal(got, raw) {
			t.Fatalf("%q, %v, want %q", got, err, raw)
		}
	})
}
