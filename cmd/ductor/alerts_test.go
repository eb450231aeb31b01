package main

import (
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// The owner gets one alert when a budget is nearly spent, also across a restart, and one when the budget is raised.
func TestTheOwnerIsAlertedOnceOverRestarts(t *testing.T) {
	town := surroundings(t, func(cfg *config.Config) {
		cfg.Budget.Day, cfg.Telegram.AllowedUsers = 10, []int64{owner, neighbour}
	})
	db, err := store.Open(t.Context(), town.database(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.CountSpent(t.Context(), orchestrator.Spent{ID: "a", At: time.Now(), Agent: "claude",
		CostUSD: 9}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	count := func(part string) (n int) {
		for _, m := range town.chat.View().FromBot() {
			n += strings.Count(m.Text, part)
		}
		return n
	}
	town.start()
	town.await("of today's budget of")
	town.stop()
	town.start()
	town.say(`[[text "in between"]]`)
	town.awaitDone(1)
	town.stop()
	town.cfg.Budget.Day = 100
	town.start()
	town.await("There is room in today's budget again.")
	if n := count("At 100 % nothing runs until midnight"); n != 1 {
		t.Errorf("the owner was told %d times", n)
	}
}

// A sole user is the owner. The warning about a budget appears below the turn, without an additional alert.
func TestASoleUserIsWarnedOfABudgetOnce(t *testing.T) {
	town := surroundings(t, func(cfg *config.Config) { cfg.Budget.Day = 1 })
	town.start()
	town.say(`one [[usage in=1000 out=200 cost=0.85]] [[text "first"]]`)
	town.await("Budget: $0.85 of $1.00 for today is spent")
	town.stop()
	town.start() // checks for problems at once
	town.say(`two [[text "second"]]`)
	town.awaitDone(2)
	for _, m := range town.chat.View().FromBot() {
		if strings.Contains(m.Text, "At 100 % nothing runs until midnight") {
			t.Errorf("the owner is told again: %q", m.Text)
		}
	}
}
