package claude

import (
	"strings"
	"testing"

	"ductor/internal/sim/hostile"
)

// Parsing any line of a session's file returns no more than the line contains.
func FuzzStoredLine(f *testing.F) {
	for _, line := range []string{`{"type":"user","sessionId":"a","cwd":"/d","message":{"content":[{"type":"text","text":"hi"}]}}`, `{"sessionId":1}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if out := storedLine(line); len(out.Prompt) > 4*len(line)+1 || len(out.ID) > 4*len(line) {
			t.Fatalf("%q is %+v", line, out)
		}
	})
}

// The work for a prompt of many parts is proportional to its length.
func TestTheWorkOverAStoredPromptIsLinear(t *testing.T) {
	lines := func(size int) map[string]string {
		part := `{"type":"text","text":"a"},`
		return map[string]string{"parts": strings.Replace(`{"type":"user","sessionId":"a","message":{"content":[PARTS]}}`, "PARTS", strings.Repeat(part, size/len(part))+part[:len(part)-1], 1)}
	}
	hostile.Linear(t, lines, func(text string) { storedLine([]byte(text)) })
}
