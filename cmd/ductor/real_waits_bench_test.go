package main

import (
	"fmt"
	"testing"
	"time"

	"ductor/internal/config"
)

// waits drives one real agent and measures the times that its user waits.
type waits struct {
	*liveTown
	b      *testing.B
	rounds int
	word   int
}

// BenchmarkRealWaits measures with the real agents how long users wait in other situations than an ordinary answer.
// The model answers at once. Each figure is a median. The time above the warm answer's belongs to ductor or to the
// agent's start:
//
//	warm       from a message to the first word of the answer, in a chat with earlier turns
//	interrupt  from the press of Interrupt to the first word of the waiting message's answer
//	allow      from the press of Allow to the first word after the tool
//	stopped    from a message 5 s after "Stopped." to the first word
//	model      from the first /model of a chat to its reply
//
//	go test -run xxx -bench RealWaits -benchtime 1x ./cmd/ductor
func BenchmarkRealWaits(b *testing.B) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		b.Run(agent, func(b *testing.B) {
			for b.Loop() {
				town, _ := realTown(b, agent, func(c *config.Config) { c.Permissions.Mode = "ask" })
				w := &waits{liveTown: &liveTown{town: town, agent: agent}, b: b, rounds: 5}
				w.measure("model", 1, w.model)
				w.warm()
				w.measure("warm", w.rounds, w.warm)
				w.measure("interrupt", w.rounds, w.interrupt)
				w.measure("allow", w.rounds, w.allow)
				w.measure("stopped", w.rounds, w.stopped)
			}
		})
	}
}

func (w *waits) measure(name string, rounds int, one func() time.Duration) {
	var took []time.Duration
	for range rounds {
		took = append(took, one())
		time.Sleep(3 * time.Second) // so that the chat's budget delays nothing
	}
	reportMedian(w.b, took, name+"-ms")
}

// prompt sends a prompt, and returns the word of its answer, which the prompt does not contain.
func (w *waits) prompt(before string) (word string) {
	w.word++
	w.say(`[[start]] %s [[text "go"]] [[text "od-%d."]]`, before, w.word)
	return fmt.Sprintf("good-%d.", w.word)
}

func (w *waits) model() time.Duration {
	began := time.Now()
	w.say("/model")
	w.await("odel")
	return time.Since(began)
}

func (w *waits) warm() time.Duration {
	began := time.Now()
	word := w.prompt("")
	w.awaitWord(word)
	took := time.Since(began)
	w.next()
	return took
}

func (w *waits) interrupt() time.Duration {
	w.word++
	w.say(`[[start]] [[text "on and on-%d" ]] [[text n=2000 delay=20ms]]`, w.word)
	w.awaitWord(fmt.Sprint("on and on-", w.word))
	word := w.prompt("")
	m := w.awaitButton("⚡ Interrupt")
	began := time.Now()
	go func() { _, _ = w.chat.Person().Press(w.soon(), m, "⚡ Interrupt") }()
	w.awaitWord(word)
	took := time.Since(began)
	w.turns++ // the aborted one
	w.next()
	return took
}

func (w *waits) allow() time.Duration {
	word := w.prompt(fmt.Sprintf(`[[tool cmd="touch allowed-%d"]]`, w.word))
	m := w.awaitButton("✅ Allow once")
	began := time.Now()
	go func() { _, _ = w.chat.Person().Press(w.soon(), m, "✅ Allow once") }()
	w.awaitWord(word)
	took := time.Since(began)
	w.next()
	return took
}

func (w *waits) stopped() time.Duration {
	w.word++
	w.say(`[[start]] [[text "on and on-%d" ]] [[text n=2000 delay=20ms]]`, w.word)
	w.awaitWord(fmt.Sprint("on and on-", w.word))
	abort := w.say("/abort")
	w.awaitAfter(abort, "Stopped.")
	w.turns++
	time.Sleep(5 * time.Second)
	return w.warm()
}
