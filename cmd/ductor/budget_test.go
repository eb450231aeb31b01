package main

import (
	"strings"
	"testing"

	"ductor/internal/config"
)

// A user gets one warning about a budget. When it is spent, ductor rejects turns, also after a restart, until the
// owner lifts it.
func TestABudgetInTheChat(t *testing.T) {
	town := surroundings(t, func(cfg *config.Config) { cfg.Budget.Day = 1 })
	town.start()
	town.say(`one [[usage in=1000 out=200 cost=0.85]] [[text "first"]]`)
	town.await("Budget: $0.85 of $1.00 for today is spent")
	town.answer("/usage", "by day")
	town.say(`two [[usage in=10 out=2 cost=0.3]] [[text "second"]]`)
	town.awaitAnswer("second") // the cost of a turn is stored before its answer has a footer
	town.stop()
	town.start()
	town.say(`three [[text "third"]]`)
	refused := town.await("A budget is spent: $1.15 of $1.00 for today is spent")
	if _, err := town.chat.Person().Press(town.soon(), refused, "🔓 Lift budgets for today"); err != nil {
		t.Fatal(err)
	}
	town.awaitAnswer("third")
	if shown := town.answer("/usage month agent", "by agent"); !strings.Contains(shown, "$1.16") {
		t.Errorf("the table is %q", shown)
	}
	town.answer("/audit", "without asking")
}
