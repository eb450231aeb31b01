package copilot

import (
	"testing"
	"time"

	"ductor/cli"
)

// This measures the time from a prompt to the first text of its answer, from the second turn on, with the real CLI.
func BenchmarkPromptToText(b *testing.B) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		b.Run(string(mode), func(b *testing.B) {
			p, dir, _ := real(b)
			req := cli.Request{Dir: dir, Prompt: "hello [[text ok]]"}
			s, err := p.Open(b.Context(), mode, req)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := s.Close(b.Context()); err != nil {
					b.Error(err)
				}
			}()
			turn := func() (first time.Duration) {
				began := time.Now()
				s.Turn(b.Context(), req, func(ev cli.Event) {
					if _, ok := ev.(cli.TextDelta); ok && first == 0 {
						first = time.Since(began)
					}
					if r, ok := ev.(cli.Result); ok && r.Err != nil {
						b.Fatal(r.Err)
					}
				})
				return first
			}
			turn()
			req.Resume = s.Info().AgentSessionID
			var sum time.Duration
			for b.Loop() {
				sum += turn()
			}
			b.ReportMetric(float64(sum.Microseconds())/1000/float64(b.N), "ms/first-text")
		})
	}
}
