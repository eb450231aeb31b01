package rooted

import (
	"bytes"
	"testing"
)

// ReadAnswer returns no more than the allowed number of bytes, whatever a container prints.
func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte("{\"size\":3}\n.abc"), int64(10))
	f.Add([]byte("{\"Size\":-1}\n"), int64(10))
	f.Fuzz(func(t *testing.T, printed []byte, most int64) {
		most &= 1<<16 - 1
		if _, content, err := ReadAnswer(bytes.NewReader(printed), most); err == nil && int64(len(content)) > most {
			t.Fatalf("%d bytes", len(content))
		}
	})
}
