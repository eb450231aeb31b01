package main

import (
	"strings"
	"syscall"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// A failure counts the commands that ran: one that waits for its user when the agent dies did not, nor one that was denied.
func TestAFailureCountsWhatRan(t *testing.T) {
	const counted = "1 command ran before that."
	for name, c := range map[string]struct {
		press  string // on the card of the command; empty for nothing: then the agent is killed
		counts bool
	}{
		"waits": {}, "denied": {press: "⛔ Deny"}, "allowed": {press: "✅ Allow once", counts: true},
	} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
			asked := town.say(`[[start]] [[ask cmd="echo x >>ran"]] [[crash code=3]]`)
			card := town.awaitButton("✅ Allow once")
			if c.press != "" {
				town.pressOn(card, c.press)
			}
			for _, run := range town.runs() {
				if c.press == "" && town.turnOf(run) != "" {
					if err := syscall.Kill(run.PID, syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
				}
			}
			m := town.awaitMessage(func(m telegram.Message) bool {
				return m.ID > asked.ID && strings.Contains(m.Text, "ended unexpectedly") && !m.HasButton("⏹ Stop")
			})
			if strings.Contains(m.Text, counted) != c.counts {
				t.Errorf("it says %q", m.Text)
			}
		})
	}
}
