package card

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// benchCards returns cards on a simulated Telegram over loopback.
func benchCards(b *testing.B) (*Cards, *telegram.Server) {
	b.Helper()
	srv := telegram.New(telegram.Options{KeepCalls: 1000, KeepVersions: 1, KeepMessages: 10})
	if err := srv.Start(); err != nil {
		b.Fatal(err)
	}
	transport, err := tgapi.NewTransport("")
	if err != nil {
		b.Fatal(err)
	}
	client, err := tgapi.NewClient(tgapi.ClientOptions{Token: srv.Token(), APIBase: srv.URL(), Transport: transport})
	if err != nil {
		b.Fatal(err)
	}
	out := outbox.New(outbox.Options{Trouble: tgapi.TroubleOf, Private: outbox.Rate{Every: time.Second, Burst: 1 << 20}, Overall: outbox.Rate{Every: time.Millisecond, Burst: 1 << 20}})
	b.Cleanup(func() {
		if err := out.Drain(context.Background()); err != nil {
			b.Error(err)
		}
		transport.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			b.Error(err)
		}
	})
	o := over(client, out, bottest.NewJournal())
	o.Look = func() Look { return Look{Pacing: houseRules()} }
	return New(o), srv
}

func benchTurn(chat int64, n int) orchestrator.Turn {
	return orchestrator.Turn{
		ID:     cli.TurnID(fmt.Sprintf("%d/%d", chat, n)),
		Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: chat}},
	}
}

// BenchmarkCardFirstText measures the time from an agent's first word to the arrival of the call at Telegram.
func BenchmarkCardFirstText(b *testing.B) {
	cards, srv := benchCards(b)
	srv.Private(7, "Anna").Person().Send(srv.Private(7, "Anna"), "go")
	arrived := make(chan time.Time, 16)
	srv.OnCall(func(c telegram.Call) {
		if c.Method == "sendMessage" {
			arrived <- c.At
		}
	})
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		c := cards.Open(benchTurn(7, n))
		time.Sleep(time.Millisecond) // no agent is faster
		start := time.Now()
		c.Show(cli.TextDelta{Text: "twenty characters.. "})
		took = append(took, (<-arrived).Sub(start))
		if err := c.Finish(b.Context(), orchestrator.Outcome{State: orchestrator.TurnDone, Text: "twenty characters.. "}); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkTwentyChats streams 200 deltas to each of 20 chats within 5 s. It measures the CPU time of this process,
// including that of the simulated Telegram.
func BenchmarkTwentyChats(b *testing.B) {
	cards, srv := benchCards(b)
	n := 0
	for b.Loop() {
		n++
		before := cpu(b)
		var wg sync.WaitGroup
		for i := range 20 {
			id := int64(100 + i)
			chat := srv.Private(telegram.UserID(id), "Anna")
			chat.Person().Send(chat, "go")
			wg.Go(func() {
				c := cards.Open(benchTurn(id, n))
				var answer cli.Answer
				for range 200 {
					ev := cli.TextDelta{Text: "twenty characters.. "}
					answer.Add(ev)
					c.Show(ev)
					time.Sleep(25 * time.Millisecond)
				}
				if err := c.Finish(b.Context(), orchestrator.Outcome{State: orchestrator.TurnDone, Text: answer.String()}); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		b.ReportMetric(float64((cpu(b) - before).Milliseconds()), "cpu-ms/op")
		b.ReportMetric(float64(len(srv.Calls(telegram.Writes)))/20/float64(n), "calls/chat")
	}
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
