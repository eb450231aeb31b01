package claude

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// The answer has 100 kB in 5000 deltas, in the layouts of Claude Code before 2.1.332 and since.
func BenchmarkLongAnswer(b *testing.B) {
	b.Run("old", func(b *testing.B) { benchmarkLongAnswer(b, `"}`) })
	b.Run("new", func(b *testing.B) { benchmarkLongAnswer(b, `","api_message_id":"msg_deeace8c57a040a78fc43bc0"}`) })
}

func benchmarkLongAnswer(b *testing.B, end string) {
	piece := strings.Repeat("x", 20)
	raw := [][]byte{[]byte(initLine)}
	for _, l := range textLines("A", "") {
		raw = append(raw, []byte(l))
	}
	for range 5000 {
		raw = append(raw, fmt.Appendf(nil, `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}},`+
			`"session_id":"7b409ce8-aac6-4453-adb7-8408089d1230","parent_tool_use_id":null,"uuid":"0f960155-6150-4fa6-927b-1daa9a19ef80`+end, piece))
	}
	raw = append(raw, fmt.Appendf(nil, `{"type":"assistant","message":{"id":"A","content":[{"type":"text","text":%q}]}}`, strings.Repeat(piece, 5000)), []byte(doneLine))
	b.ReportAllocs()
	for b.Loop() {
		p := newParser(turn.NewEmitter(agent, time.Now, func(cli.Event) {}), newMemory(), "")
		for _, l := range raw {
			p.line(l)
		}
		if n := len(p.flow.em.Answer()); n != 100_000 {
			b.Fatalf("answer of %d bytes", n)
		}
	}
}
