package main

import (
	"strings"
	"syscall"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// A failure counts the commands that ran. Commands that were waiting or denied when the agent died do not count.
func TestAFailureCountsWhatRan(t *testing.T) {
	const counted = "1 command ran before that."
	for name, c := range map[string]struct {
		press  string // button on the command's card; if empty, the agent is killed instead
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
