package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// lines writes whole lines, each with one call of Write. It is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

// raw writes b. It ignores errors, because they mean that the client has disconnected.
func (l *lines) raw(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(b)
}

func (l *lines) line(b []byte) { l.raw(append(b, '\n')) }

// obj returns a JSON object. kv alternates keys and values.
func obj(kv ...any) json.RawMessage {
	b := []byte{'{'}
	for i := 0; i+1 < len(kv); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, kv[i])
		b = append(b, ':')
		b = appendJSON(b, kv[i+1])
	}
	return append(b, '}')
}

// appendJSON appends v without escaping for HTML.
func appendJSON(b []byte, v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		return append(b, raw...)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return append(b, "null"...)
	}
	return append(b, bytes.TrimRight(buf.Bytes(), "\n")...)
}
