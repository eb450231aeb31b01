package store

import (
	"errors"
	"testing"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

// aside stores a consultation in a session.
func aside(t testing.TB, db *DB, id cli.TurnID, session orchestrator.SessionID, text string) orchestrator.Turn {
	t.Helper()
	turn := newTurn(id)
	turn.Session, turn.Agent, turn.Model, turn.Sandbox = session, "codex", "gpt", "box"
	turn.Started, turn.Ended = turn.Queued, turn.Queued.Add(time.Second)
	turn.State, turn.Delivered = orchestrator.TurnDone, true
	turn.Entry = orchestrator.Entry{Kind: orchestrator.ConsultationEntry, Role: "reviewer", Asks: "asker"}
	turn.Wants.Effort, turn.Prompt.Text, turn.Outcome = "high", "asked of "+string(id), done(text)
	turn.Outcome.CostUSD, turn.Outcome.Steps = 0.5, 1
	must(t, db.AddEntry(t.Context(), turn, []orchestrator.Step{{Number: 1, Tool: "Read", Title: "notes", Output: "x"}}))
	return turn
}

func idsOf(turns []orchestrator.Turn) (all []cli.TurnID) {
	for _, t := range turns {
		all = append(all, t.ID)
	}
	return all
}

// Entries are numbered when they end, and listed in that order: a consultation that ended while a turn ran comes before
// it, and a message that was steered into a turn after it.
func TestEntriesAreInTheOrderOfTheirEnds(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s", chatA, noon)
	running := newTurn("running")
	running.Session = "s"
	must(t, db.EnqueueTurn(ctx, running))
	running.Started = noon
	if !get[bool](t)(db.StartTurn(ctx, running, cli.Start{})) {
		t.Fatal("it does not start")
	}
	steered := newTurn("steered")
	must(t, db.EnqueueTurn(ctx, steered))
	if !get[bool](t)(db.SteerTurn(ctx, "steered", "running", noon)) {
		t.Fatal("it is not steered")
	}
	consulted := aside(t, db, "aside", "s", "an answer aside")
	consulted.Entry.Number = 1
	same(t, "the entry", get[orchestrator.Turn](t)(db.Turn(ctx, "aside")), consulted)
	same(t, "before the turn ends", idsOf(get[[]orchestrator.Turn](t)(db.History(ctx, "s", 9))), []cli.TurnID{"aside"})
	must(t, db.FinishTurn(ctx, "running", noon, done("the answer")))
	must(t, db.MarkDelivered(ctx, "steered"))
	aside(t, db, "last", "s", "the last answer")
	same(t, "history", idsOf(get[[]orchestrator.Turn](t)(db.History(ctx, "s", 9))),
		[]cli.TurnID{"aside", "running", "steered", "last"})
	same(t, "after the first", idsOf(get[[]orchestrator.Turn](t)(db.EntriesAfter(ctx, "s", 1, 9))),
		[]cli.TurnID{"running", "steered", "last"})
	s := get[orchestrator.Session](t)(db.Session(ctx, "s"))
	if s.Totals.Messages != 3 || s.Totals.CostUSD != 1 || s.Newest != 3 {
		t.Errorf("the session is %+v", s)
	}
	if open := get[[]orchestrator.Turn](t)(db.OpenTurns(ctx)); len(open) != 1 || open[0].ID != "running" {
		t.Errorf("open are %v", idsOf(open))
	}
	steps := get[[]orchestrator.Step](t)(db.StepsOf(ctx, "aside"))
	if len(steps) != 1 || steps[0].Title != "notes" {
		t.Errorf("its steps are %+v", steps)
	}
	found, _, err := db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: chatA, Words: "answer", Limit: 9})
	if must(t, err); len(found) != 1 || found[0].Turn != "last" {
		t.Errorf("found: %+v", found)
	}
	must(t, db.ForkSession(ctx, orchestrator.Session{ID: "fork", Conversation: chatA, Created: noon, Used: noon},
		"running"))
	same(t, "of a fork", idsOf(get[[]orchestrator.Turn](t)(db.History(ctx, "fork", 9))),
		[]cli.TurnID{"aside", "running", "steered"})
}

// LastAside finds the newest entry of a kind of a session or a conversation, also of a moved one.
func TestLastAside(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s", chatA, noon)
	newSession(t, db, "other", chatA, noon)
	if _, err := db.LastAside(ctx, chatA, "", orchestrator.ConsultationEntry); !errors.Is(err,
		orchestrator.ErrNoConsult) {
		t.Errorf("before the first: %v", err)
	}
	aside(t, db, "1", "s", "a")
	aside(t, db, "2", "other", "b")
	last := func(in orchestrator.ConversationID, id orchestrator.SessionID, want cli.TurnID) {
		t.Helper()
		if got := get[orchestrator.Turn](t)(db.LastAside(ctx, in, id, orchestrator.ConsultationEntry)); got.ID != want {
			t.Errorf("the last is %s, want %s", got.ID, want)
		}
	}
	last(chatA, "", "2")
	last(chatA, "s", "1")
	if _, err := db.LastAside(ctx, chatB, "", orchestrator.ConsultationEntry); !errors.Is(err,
		orchestrator.ErrNoConsult) {
		t.Errorf("of another chat: %v", err)
	}
	worked := newTurn("3")
	worked.Session, worked.Agent, worked.Outcome = "s", "claude", done("c")
	worked.Entry.Kind = orchestrator.WorkEntry
	must(t, db.AddEntry(ctx, worked, nil))
	last(chatA, "s", "1")
	for kind, want := range map[orchestrator.SessionID]cli.TurnID{"s": "3", "other": "2", "": "3"} {
		if got := get[orchestrator.Turn](t)(db.LastAside(ctx, chatA, kind, orchestrator.WorkEntry)); got.ID != want {
			t.Errorf("the last work in %q is %s, want %s", kind, got.ID, want)
		}
	}
	must(t, db.MoveSession(ctx, "s", chatB))
	last(chatB, "s", "1")
}

// A name belongs to a conversation. It moves and disappears with its session, and only a job's own session stays.
func TestNamesOfSessions(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	create := func(id orchestrator.SessionID, in orchestrator.ConversationID, name string) {
		t.Helper()
		must(t, db.CreateOwnSession(ctx, name, orchestrator.Session{ID: id, Conversation: in, Person: 7, Created: noon,
			Used: noon}))
	}
	named := func(in orchestrator.ConversationID, name string, want orchestrator.SessionID) {
		t.Helper()
		s, err := orchestrator.FindSession(ctx, db, in, name)
		if want == "" && !errors.Is(err, orchestrator.ErrNoSession) || want != "" && (err != nil || s.ID != want) {
			t.Errorf("%q in %v is %q, %v; want %q", name, in, s.ID, err, want)
		}
	}
	create("a", chatA, "auth-789")
	named(chatA, "auth-789", "a")
	named(chatA, "a", "a")
	named(chatB, "auth-789", "")
	named(chatB, "a", "")
	create("b", chatB, "a") // the ID of a session of another conversation is just a name here
	named(chatB, "a", "b")
	must(t, db.MoveSession(ctx, "a", chatB))
	named(chatA, "auth-789", "")
	named(chatB, "auth-789", "a")
	create("c", chatA, "auth-789")
	must(t, db.MoveSession(ctx, "c", chatB)) // the name is taken there
	named(chatB, "auth-789", "a")
	must(t, db.DeleteSession(ctx, "a"))
	named(chatB, "auth-789", "")
	must(t, db.SaveJob(ctx, orchestrator.Job{ID: "job", Conversation: chatA}, noon, noon))
	create("d", chatA, "job")
	for _, err := range []error{db.DeleteSession(ctx, "d"), db.MoveSession(ctx, "d", chatB)} {
		if !errors.Is(err, orchestrator.ErrSessionInUse) {
			t.Errorf("the own session of a job: %v", err)
		}
	}
	found, _, err := db.FindSessions(ctx, orchestrator.SessionQuery{
		Conversation: orchestrator.ConversationID{Chat: 1}, Elsewhere: 7, Limit: 9})
	must(t, err)
	for _, f := range found {
		if f.Session.ID == "d" {
			t.Error("the own session of a job is listed elsewhere")
		}
	}
	if len(found) != 2 {
		t.Errorf("listed elsewhere: %+v", found)
	}
}

// Retention, deletion and rescue treat consultations like turns.
func TestConsultationsAreKeptLikeTurns(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s", chatA, noon)
	aside(t, db, "aside", "s", "an answer")
	must(t, db.SetAgentSession(ctx, "s", orchestrator.AgentEnv{Agent: "codex", Lane: orchestrator.AsideLane},
		orchestrator.AgentSession{ID: "own", Told: "aside"}))
	stats := get[heartbeat.TrimStats](t)(db.Transcripts().Trim(ctx, heartbeat.Cutoff{Before: noon.Add(time.Hour)}))
	if turn := get[orchestrator.Turn](t)(db.Turn(ctx, "aside")); turn.Prompt.Text != "" || turn.Outcome.Text != "" {
		t.Errorf("after retention, which trimmed %+v: %+v", stats, turn)
	}
	must(t, db.SaveConversation(ctx, orchestrator.Conversation{ID: chatA}))
	must(t, db.DeleteSession(ctx, "s"))
	if _, err := db.Turn(ctx, "aside"); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("after the session was deleted: %v", err)
	}
	if steps := get[[]orchestrator.Step](t)(db.StepsOf(ctx, "aside")); len(steps) > 0 {
		t.Errorf("its steps stay: %+v", steps)
	}
}
