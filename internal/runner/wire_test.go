package runner

import (
	"encoding/json"
	"net"
	"testing"
)

// Any message of a client is either read completely or rejected.
func FuzzReceive(f *testing.F) {
	frame := func(header, body string) []byte {
		return append([]byte{0, 0, 0, byte(len(header)), 0, 0, 0, byte(len(body))}, header+body...)
	}
	f.Add(append(frame(`{"op":"list"}`, ""), frame(`{"op":"write","run":"a"}`, "text")...))
	f.Add(frame("not JSON", "x"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, '{', '}'})
	f.Fuzz(func(t *testing.T, sent []byte) {
		theirs, ours := net.Pipe()
		defer ours.Close()
		go func() {
			_, _ = theirs.Write(sent) // fails if a message is rejected
			_ = theirs.Close()
		}()
		in := &frames{conn: ours}
		for {
			var q request
			body, err := in.receive(&q)
			if err != nil {
				return
			}
			if len(body) > len(sent) {
				t.Fatalf("%d bytes of %d", len(body), len(sent))
			}
			if _, err := json.Marshal(q); err != nil {
				t.Fatal(err)
			}
		}
	})
}
