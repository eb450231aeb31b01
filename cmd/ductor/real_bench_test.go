package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
)

// BenchmarkRealSecondTurn measures the cost of a later message: the time until the first word of the answer is in the
// chat, with the real agents, live and one-shot. The model answers at once.
//
//	go test -run xxx -bench RealSecondTurn -benchtime 10x ./cmd/ductor
func BenchmarkRealSecondTurn(b *testing.B) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
			b.Run(agent+"/"+string(mode), func(b *testing.B) {
				town, _ := realTown(b, agent, func(c *config.Config) {
					a := &c.Agents
					a.Claude.Mode, a.Codex.Mode, a.Gemini.Mode, a.Copilot.Mode = mode, mode, mode, mode
				})
				town.say(`[[start]] [[text "the first answer"]]`)
				town.awaitDone(1)
				i := 1
				var took []time.Duration
				for b.Loop() {
					i++
					word := fmt.Sprintf("word-%d", i)
					began := time.Now()
					town.say(`[[start]] [[text "%s"]]`, word)
					town.awaitWord(word)
					took = append(took, time.Since(began))
					b.StopTimer()
					town.awaitDone(i)
					time.Sleep(betweenTurns)
					b.StartTimer()
				}
				reportMedian(b, took, "ms/median")
			})
		}
	}
}

// betweenTurns is longer than an agent's work after a turn, so that the next one does not wait for it.
const betweenTurns = 500 * time.Millisecond

// reportMedian reports the median of times in milliseconds.
func reportMedian(b *testing.B, took []time.Duration, unit string) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, unit)
}
