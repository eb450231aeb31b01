package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// BenchmarkHotPath measures the store's part of one message. Each figure is the median of a step in microseconds; the
// target is 500 for each.
func BenchmarkHotPath(b *testing.B) {
	db, ctx := newDB(b), b.Context()
	newSession(b, db, "s1", chatA, noon)
	raw := []byte(strings.Repeat("u", 800))
	o := orchestrator.Outcome{State: orchestrator.TurnDone, Text: strings.Repeat("answer ", 300)}
	took := make(map[string][]time.Duration)
	step := func(name string, f func() error) {
		began := time.Now()
		err := f()
		took[name] = append(took[name], time.Since(began))
		must(b, err)
	}
	i := int64(0)
	for b.Loop() {
		i++
		turn := newTurn(cli.TurnID(fmt.Sprint("t", i)), i)
		turn.Session, turn.Started = "s1", noon
		step("append", func() error {
			_, err := db.AppendUpdates(ctx, []orchestrator.Update{{ID: i, Raw: raw}})
			return err
		})
		step("enqueue", func() error { return db.EnqueueTurn(ctx, turn) })
		step("conversation", func() error { _, err := db.Conversation(ctx, chatA); return err })
		step("session", func() error { _, err := db.Session(ctx, "s1"); return err })
		step("start", func() error { _, err := db.StartTurn(ctx, turn, cli.Start{}); return err })
		step("message", func() error {
			return db.SaveMessage(ctx, orchestrator.Message{Key: "card/" + string(turn.ID), Turn: turn.ID,
				State: orchestrator.Sent, ID: 5})
		})
		step("finish", func() error { return db.FinishTurn(ctx, turn.ID, noon, o) })
		step("delivered", func() error { return db.MarkDelivered(ctx, turn.ID) })
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, name+"-p50-us")
		b.ReportMetric(float64(all[len(all)*99/100].Nanoseconds())/1000, name+"-p99-us")
	}
}
