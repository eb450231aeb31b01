package store

import (
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// A running turn has a starting point, a queued turn has none. Background work is listed with the last turn of its run,
// until another turn starts in the run or the work ends.
func TestStartsAndBackground(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	enqueue := func(id cli.TurnID) orchestrator.Turn {
		t.Helper()
		turn := orchestrator.Turn{ID: id, Agent: "claude",
			Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: 1, Topic: 2}}}
		must(t, db.EnqueueTurn(ctx, turn))
		return turn
	}
	begin := func(turn orchestrator.Turn, s cli.Start) {
		t.Helper()
		if !get[bool](t)(db.StartTurn(ctx, turn, s)) {
			t.Fatal("it does not start")
		}
	}
	record := func(s cli.Start) { t.Helper(); must(t, db.RecordBackground(ctx, s)) }
	working := func(want ...cli.OpenTurn) {
		t.Helper()
		var got []cli.OpenTurn
		for _, o := range get[[]cli.OpenTurn](t)(db.RunningTurns(ctx)) {
			if o.Background {
				got = append(got, o)
			}
		}
		same(t, "background", got, want)
	}
	started := func(turn cli.TurnID) (s cli.Start) {
		t.Helper()
		for _, o := range get[[]cli.OpenTurn](t)(db.RunningTurns(ctx)) {
			if o.Turn == turn && !o.Background {
				s = o.Start
			}
		}
		return s
	}
	one := enqueue("1")
	first := cli.Start{Run: "r", Output: 3, Input: 4, Note: "n"}
	same(t, "start of a queued turn", started("1"), cli.Start{})
	begin(one, cli.Start{Run: "before"})
	begin(one, first)
	same(t, "start", started("1"), first)

	open := cli.Start{Run: "r", Output: 9, Input: 8, Note: "task"}
	working()
	record(open)
	working(cli.OpenTurn{Turn: "1", Agent: "claude", Conversation: "1/2", Start: open, Background: true})
	record(cli.Start{Run: "other", Note: "task"})
	record(cli.Start{Run: "r"})
	working()
	record(open)
	two := enqueue("2")
	begin(two, cli.Start{Run: "r", Output: 20})
	working()
	same(t, "start of the turn before", started("1"), first)
	record(open)
	must(t, db.EndBackground(ctx, "r"))
	working()
}
