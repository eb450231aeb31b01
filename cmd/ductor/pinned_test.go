package main

import (
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// A waiting approval is pinned, and Telegram's note about the pin is deleted. The decision unpins it.
func TestAnApprovalThatWaitsIsPinned(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	town.say(`[[ask cmd="touch allowed"]] [[text "it ran"]]`)
	card := town.awaitButton("✅ Allow once")
	pinned := town.awaitMessage(func(m telegram.Message) bool { return m.Pinned })
	if pinned.ID != card.ID {
		t.Errorf("message %d is pinned, not %d", pinned.ID, card.ID)
	}
	town.awaitMessage(func(m telegram.Message) bool {
		for _, h := range town.chat.History() {
			if h.Service == "pinned a message" {
				return h.Deleted
			}
		}
		return false
	})
	town.pressOn(card, "✅ Allow once")
	town.await("it ran")
	town.awaitMessage(func(m telegram.Message) bool { return m.ID == card.ID && !m.Pinned })
}
