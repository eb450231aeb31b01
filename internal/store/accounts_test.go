package store

import (
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// Each account of an agent has its own session in a session of ductor. Turns and conversations keep their accounts.
func TestAccountsHaveSessionsOfTheirOwn(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s", chatA, noon)
	want := map[orchestrator.AgentEnv]orchestrator.AgentSession{}
	for i, of := range []orchestrator.AgentEnv{
		{Agent: "claude"}, {Agent: "claude", Account: "work"}, {Agent: "codex", Account: "work"},
		{Agent: "claude", Account: "work", Lane: orchestrator.AsideLane},
	} {
		want[of] = orchestrator.AgentSession{ID: cli.AgentSessionID(rune('a' + i)), Told: "t", UpTo: int64(i)}
		must(t, db.SetAgentSession(ctx, "s", of, want[of]))
	}
	same(t, "the sessions", get[orchestrator.Session](t)(db.Session(ctx, "s")).AgentSessions, want)
	work := orchestrator.AgentEnv{Agent: "claude", Account: "work"}
	must(t, db.SetAgentSession(ctx, "s", work, orchestrator.AgentSession{}))
	delete(want, work)
	same(t, "without one", get[orchestrator.Session](t)(db.Session(ctx, "s")).AgentSessions, want)

	c := orchestrator.Conversation{ID: chatA, Agent: "claude", Session: "s"}
	c.Settings.Accounts = cli.Accounts{"claude": "work", "codex": "home"}
	must(t, db.SaveConversation(ctx, c))
	same(t, "what a chat chose", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatA)), c)
	c.Settings.Accounts = nil
	must(t, db.SaveConversation(ctx, c))
	same(t, "what a chat forgot", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatA)), c)

	turn := newTurn("t")
	must(t, db.EnqueueTurn(ctx, turn))
	turn.Agent, turn.Entry.Account, turn.Started = "claude", "work", noon
	if !get[bool](t)(db.StartTurn(ctx, turn, cli.Start{Run: "r"})) {
		t.Fatal("it did not start")
	}
	if got := get[orchestrator.Turn](t)(db.Turn(ctx, "t")); got.Entry.Account != "work" {
		t.Errorf("the turn has the account %q", got.Entry.Account)
	}
	if open := get[[]cli.OpenTurn](t)(db.RunningTurns(ctx)); len(open) != 1 || open[0].Account != "work" {
		t.Errorf("the running turns are %+v", open)
	}
}

// The usage of an account has its turns. A turn that another agent ran counts for the default account of that agent.
// Usage outside of turns has no account.
func TestUsageByAccount(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	for id, account := range map[cli.TurnID]cli.Account{"a": "work", "b": "work", "c": "", "d": "work"} {
		turn := newTurn(id)
		must(t, db.EnqueueTurn(ctx, turn))
		turn.Agent, turn.Entry.Account, turn.Started = "claude", account, noon
		get[bool](t)(db.StartTurn(ctx, turn, cli.Start{Run: cli.RunID(id)}))
		o := done("x")
		if o.Agent = "claude"; id == "d" {
			o.Agent = "codex"
		}
		must(t, db.FinishTurn(ctx, id, noon, o))
	}
	must(t, db.CountSpent(ctx, orchestrator.Spent{ID: "aside", At: noon, Agent: "claude"}))
	got := map[string]int{}
	q := orchestrator.UsageQuery{By: orchestrator.UsageByAccount}
	for _, r := range get[[]orchestrator.UsageRow](t)(db.Usage(ctx, q)) {
		got[r.Name] = r.Turns
	}
	same(t, "the usage", got, map[string]int{"claude@work": 2, "claude": 1, "codex": 1, "": 1})
}
