package claude

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// A 100 kB answer in 5000 deltas.
func BenchmarkLongAnswer(b *testing.B) {
	piece := strings.Repeat("x", 20)
	raw := [][]byte{[]byte(initLine)}
	for _, l := range textLines("A", "") {
		raw = append(raw, []byte(l))
	}
	for range 5000 {
		raw = append(raw, fmt.Appendf(nil, `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}},`+
			`"session_id":"7b409ce8-aac6-4453-adb7-8408089d1230","parent_tool_use_id":null,"uuid":"0f960155-6150-4fa6-927b-1daa9a19ef80"}`, piece))
	}
	raw = append(raw, fmt.Appendf(nil, `{"type":"assistant","message":{"id":"A","content":[{"type":"text","text":%q}]}}`, strings.Repeat(piece, 5000)), []byte(doneLine))
	b.ReportAllocs()
	for b.Loop() {
		p := newParser(turn.NewEmitter(agent, time.Now, func(cli.Event) {}), newMemory(), "")
		for _, l := range raw {
			p.line(l)
		}
		if len(p.em.Answer()) != 100_000 {
			b.Fatalf("answer of %d bytes", len(p.em.Answer()))
		}
	}
}
