package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// stopwatch notes when ductor gets each delta of text from the agent.
type stopwatch struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (w *stopwatch) Begin(cli.Agent, cli.Request) orchestrator.TurnTrace { return w }
func (w *stopwatch) End(cli.Result)                                      {}

func (w *stopwatch) Observe(ev cli.Event) {
	if delta, ok := ev.(cli.TextDelta); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.at[strings.TrimSpace(delta.Text)] = time.Now()
	}
}

// since returns the time since a delta came.
func (w *stopwatch) since(text string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.at[text])
}

// The first words of an answer come to a terminal and to the chat while the turn runs. The test logs the ratio of their
// times, measured in the same turns.
func TestWordsReachTheTerminalAndTheChat(t *testing.T) {
	town := surroundings(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	watch := &stopwatch{at: map[string]time.Time{}}
	a, err := app.Build(t.Context(), town.cfg, app.Options{Log: testLog(t), Scrub: tgapi.NewScrubber(town.srv.Token()),
		Runner: clitest.Runner(t), Tracer: watch})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		a.Close()
	}()
	desk := town.attach()
	var terminal, chat []time.Duration
	for i := range 9 {
		mark := fmt.Sprintf("mark-%d", i)
		var both sync.WaitGroup
		both.Go(func() {
			desk.await(mark, func() bool {
				return slices.ContainsFunc(desk.shown.order, func(turn string) bool {
					return strings.Contains(desk.shown.entries[turn].Answer, mark)
				})
			})
			terminal = append(terminal, watch.since(mark))
		})
		both.Go(func() {
			town.awaitWord(mark)
			chat = append(chat, watch.since(mark))
		})
		town.say(`[[start]] [[text %q]] [[text " and the rest" delay=20ms chunk=4]]`, mark)
		both.Wait()
		town.awaitDone(i + 1)
	}
	slices.Sort(terminal)
	slices.Sort(chat)
	ours, theirs := terminal[len(terminal)/2], chat[len(chat)/2]
	t.Logf("from a delta to the terminal %v, to the chat %v: %.2f of it", ours, theirs, float64(ours)/float64(theirs))
}
