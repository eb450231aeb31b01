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
