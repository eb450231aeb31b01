package store

import (
	"errors"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

func TestConversation(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	same(t, "a chat that chose nothing", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatB)),
		orchestrator.Conversation{ID: chatB})

	chose := orchestrator.Conversation{ID: chatB, Agent: "codex", Model: "gpt", Effort: "high",
		Permission: cli.Plan, BypassUntil: noon, Dir: "/src", Role: "reviewer"}
	must(t, db.SaveConversation(ctx, chose))
	same(t, "what it chose", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatB)), chose)

	newSession(t, db, "s1", chatB, noon)
	chose.Session = "s1"
	same(t, "after a session began", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatB)), chose)

	reset := orchestrator.Conversation{ID: chatB}
	must(t, db.SaveConversation(ctx, reset))
	same(t, "after it forgot all", get[orchestrator.Conversation](t)(db.Conversation(ctx, chatB)), reset)

	sibling := orchestrator.ConversationID{Chat: chatB.Chat, Topic: chatB.Topic + 1}
	same(t, "another topic of the chat", get[orchestrator.Conversation](t)(db.Conversation(ctx, sibling)),
		orchestrator.Conversation{ID: sibling})

	chose.Session = "nowhere"
	if err := db.SaveConversation(ctx, chose); !errors.Is(err, orchestrator.ErrNoSession) {
		t.Errorf("naming a missing session: %v", err)
	}
}

func TestSession(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	if _, err := db.Session(ctx, "s1"); !errors.Is(err, orchestrator.ErrNoSession) {
		t.Errorf("a missing session: %v", err)
	}
	s := orchestrator.Session{ID: "s1", Conversation: chatA, Title: "t", Dir: "/src", Created: noon,
		Totals: orchestrator.Totals{Messages: 3, CostUSD: 1.5, Tokens: 7},
		AgentSessions: map[orchestrator.AgentEnv]orchestrator.AgentSession{agentEnv("claude", ""): {ID: "abc"},
			agentEnv("claude", "app"): {ID: "def", Terminal: true}}}
	must(t, db.CreateSession(ctx, s))
	same(t, "the session", get[orchestrator.Session](t)(db.Session(ctx, "s1")), s)
	if err := db.CreateSession(ctx, s); err == nil {
		t.Error("the same session was created twice")
	}

	aside := orchestrator.AgentEnv{Agent: "codex", Lane: orchestrator.AsideLane}
	set := func(of orchestrator.AgentEnv, own orchestrator.AgentSession) {
		t.Helper()
		must(t, db.SetAgentSession(ctx, "s1", of, own))
	}
	set(agentEnv("codex", ""), orchestrator.AgentSession{ID: "thread-1", Told: "t1"})
	set(agentEnv("codex", ""), orchestrator.AgentSession{ID: "thread-2", Told: "t1", UpTo: 4, Offered: 5})
	set(agentEnv("codex", "web"), orchestrator.AgentSession{ID: "thread-3", Told: "t2"})
	set(agentEnv("codex", "web"), orchestrator.AgentSession{})
	set(agentEnv("codex", "web"), orchestrator.AgentSession{ID: "thread-3"})
	set(aside, orchestrator.AgentSession{ID: "thread-4", Told: "t3"})
	set(agentEnv("claude", ""), orchestrator.AgentSession{})
	set(agentEnv("gemini", ""), orchestrator.AgentSession{Told: "t0"}) // no effect: it has no ID
	s.AgentSessions = map[orchestrator.AgentEnv]orchestrator.AgentSession{
		agentEnv("codex", ""):    {ID: "thread-2", Told: "t1", UpTo: 4, Offered: 5},
		agentEnv("codex", "web"): {ID: "thread-3"}, aside: {ID: "thread-4", Told: "t3"},
		agentEnv("claude", "app"): {ID: "def", Terminal: true},
	}
	same(t, "the session with other ids", get[orchestrator.Session](t)(db.Session(ctx, "s1")), s)

	for _, own := range []cli.AgentSessionID{"x", ""} {
		if err := db.SetAgentSession(ctx, "nowhere", agentEnv("codex", ""),
			orchestrator.AgentSession{ID: own}); !errors.Is(err, orchestrator.ErrNoSession) {
			t.Errorf("an id %q for a missing session: %v", own, err)
		}
	}
}

func TestSessionsLastUsedFirst(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "old", chatA, noon.Add(-time.Hour))
	newSession(t, db, "new", chatA, noon)
	newSession(t, db, "elsewhere", chatB, noon)
	must(t, db.CreateSession(ctx, orchestrator.Session{ID: "unused", Conversation: chatA,
		Created: noon.Add(-time.Minute)}))
	order := func(limit int) (all []orchestrator.SessionID) {
		found, _, err := db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: chatA, Limit: limit})
		must(t, err)
		for _, s := range found {
			all = append(all, s.Session.ID)
		}
		return all
	}
	same(t, "sessions", order(9), []orchestrator.SessionID{"new", "unused", "old"})
	turn := newTurn("t1")
	turn.Session = "old"
	runTurn(t, db, turn, done("x"))
	same(t, "after the old one was used", order(2), []orchestrator.SessionID{"old", "new"})
	same(t, "none asked for", order(0), []orchestrator.SessionID(nil))
}

func agentEnv(agent cli.Agent, in cli.Sandbox) orchestrator.AgentEnv {
	return orchestrator.AgentEnv{Agent: agent, Sandbox: in}
}

// A turn that was interrupted reports no cost. What the agent's session had cost before is still known.
func TestWhatASessionOfAnAgentHasCost(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s1", chatA, noon)
	run := func(id cli.TurnID, agent cli.Agent, account cli.Account, state orchestrator.TurnState, usd *float64) {
		t.Helper()
		turn := newTurn(id)
		turn.Session, turn.Agent, turn.Entry.Account = "s1", agent, account
		o := orchestrator.Outcome{State: state}
		o.Fill.SpentUSD = usd
		runTurn(t, db, turn, o)
	}
	spent := func() float64 {
		t.Helper()
		usd := get[*float64](t)(db.Spent(ctx, "own"))
		if usd == nil {
			return -1
		}
		return *usd
	}
	usd := func(v float64) *float64 { return &v }
	of := agentEnv("qwen", "")
	must(t, db.SetAgentSession(ctx, "s1", of, orchestrator.AgentSession{ID: "own"}))
	same(t, "the cost before its first turn", spent(), -1.0)
	run("t1", "qwen", "", orchestrator.TurnDone, usd(1))
	run("t2", "qwen", "", orchestrator.TurnDone, usd(2))
	run("t3", "qwen", "work", orchestrator.TurnDone, usd(7))
	run("t4", "codex", "", orchestrator.TurnDone, usd(8))
	run("t5", "qwen", "", orchestrator.TurnInterrupted, nil)
	must(t, db.SetAgentSession(ctx, "s1", of, orchestrator.AgentSession{ID: "own", Told: "t5"}))
	aside := newTurn("t6")
	aside.Session, aside.Agent, aside.Ended, aside.Entry.Kind = "s1", "qwen", noon, orchestrator.WorkEntry
	aside.Outcome = done("")
	aside.Outcome.Fill.SpentUSD = usd(9)
	must(t, db.AddEntry(ctx, aside, nil))
	same(t, "the cost after an interrupted turn", spent(), 2.0)
}
