package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/orchestrator"
)

// storeEndedTurn stores an ended and delivered turn of a session.
func storeEndedTurn(t testing.TB, db *DB, session orchestrator.SessionID, id cli.TurnID, prompt, answer string) {
	t.Helper()
	turn := newTurn(id)
	turn.Session, turn.Prompt.Text = session, prompt
	turn.Prompt.Conversation = get[orchestrator.Session](t)(db.Session(t.Context(), session)).Conversation
	runTurn(t, db, turn, done(answer))
	must(t, db.MarkDelivered(t.Context(), id))
}

func TestFindSessions(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	for i, id := range []orchestrator.SessionID{"parser", "docs", "other", "away"} {
		newSession(t, db, id, chatA, noon.Add(time.Duration(i)*time.Minute))
	}
	newSession(t, db, "elsewhere", chatB, noon)
	storeEndedTurn(t, db, "parser", "t1", "The parser crashes on Ünïcode", "It reads bytes.")
	storeEndedTurn(t, db, "parser", "t2", "Fix it", "The tokenizer reads runes now: main.go:17")
	storeEndedTurn(t, db, "docs", "t3", "Write docs for the parser", "Done.")
	storeEndedTurn(t, db, "away", "t4", "parser notes", "-")
	storeEndedTurn(t, db, "elsewhere", "t5", "the parser again", "-")
	for _, s := range []orchestrator.Session{{ID: "other", Title: "100%_sure"}, {ID: "docs", Title: "docs",
		Pinned: true}, {ID: "away", Title: "away", Archived: true}} {
		must(t, db.SaveSession(ctx, s))
	}
	for words, want := range map[string][]orchestrator.SessionID{
		"":              {"docs", "other", "parser"},
		"parser":        {"docs", "parser"},
		"PARS":          {"docs", "parser"},
		"unicode":       {"parser"},
		"tokenizer fix": {"parser"},
		"main.go:17":    {"parser"},
		"100%":          {"other"},
		"%":             {"docs", "other", "parser"}, // no word: all sessions match
		"nowhere":       nil,
		`" OR NOT (*`:   nil,
		"docs":          {"docs"},
	} {
		found, more, err := db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: chatA,
			Words: words, Limit: 10})
		var ids []orchestrator.SessionID
		for _, f := range found {
			ids = append(ids, f.Session.ID)
		}
		if err != nil || more || !slices.Equal(ids, want) {
			t.Errorf("%q finds %q, %v, %v; want %q", words, ids, more, err, want)
		}
	}
	found, _, err := db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: chatA, Words: "tokenizer", Limit: 1})
	if err != nil || len(found) != 1 || found[0].Turn != "t2" ||
		found[0].Excerpt != "The tokenizer reads runes now: main.go:17" {
		t.Errorf("%+v, %v", found, err)
	}
	found, more, err := db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: chatA, Limit: 1, Offset: 1})
	if err != nil || !more || len(found) != 1 || found[0].Session.ID != "other" {
		t.Errorf("the second page has %+v, %v, %v", found, more, err)
	}
	found, _, err = db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: chatA, Words: "notes",
		Archived: true, Limit: 9})
	if err != nil || len(found) != 1 || found[0].Session.ID != "away" {
		t.Errorf("of the archived ones %+v, %v", found, err)
	}
}

// No text that a user enters is query syntax.
func TestFindSessionsAcceptsAnyText(t *testing.T) {
	db := newDB(t)
	newSession(t, db, "s", chatA, noon)
	storeEndedTurn(t, db, "s", "t", "one", "two")
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.OneOf(rapid.String(),
			rapid.StringMatching(`[a"'*()\-^: ]{0,12}(AND|OR|NOT|NEAR/2)?[a"* ]{0,4}`)).Draw(rt, "words")
		if _, _, err := db.FindSessions(t.Context(), orchestrator.SessionQuery{Conversation: chatA, Words: words,
			Limit: 3}); err != nil {
			rt.Errorf("%q: %v", words, err)
		}
	})
}

func TestDeleteSession(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "old", chatA, noon)
	storeEndedTurn(t, db, "old", "t1", "a secret plan", "-")
	must(t, db.SetAgentSession(ctx, "old", agentEnv("claude", ""), orchestrator.AgentSession{ID: "abc"}))
	checkUse(t, db, "old", orchestrator.SessionInUse{Why: orchestrator.UsedByNextPrompt})
	newSession(t, db, "new", chatA, noon)
	must(t, db.ForkSession(ctx, orchestrator.Session{ID: "fork", Conversation: chatA, Title: "F", Created: noon}, "t1"))
	checkUse(t, db, "old", orchestrator.SessionInUse{Why: orchestrator.UsedByFork, Here: true, Fork: "F"})
	must(t, db.SaveSummary(ctx, orchestrator.Summary{Session: "old", Until: "t1", Text: "planned"}))
	must(t, db.SaveSummary(ctx, orchestrator.Summary{Session: "old", Until: "t1", Text: "planned more"}))
	same(t, "the summary", get[orchestrator.Summary](t)(db.Summary(ctx, "old")), orchestrator.Summary{Session: "old",
		Until: "t1", Text: "planned more"})
	must(t, db.DeleteSession(ctx, "fork"))
	must(t, db.CheckUnused(ctx, "old"))
	must(t, db.DeleteSession(ctx, "old"))
	if found, _, err := db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: chatA, Words: "secret",
		Limit: 3}); err != nil || len(found) > 0 {
		t.Errorf("it is still found: %+v, %v", found, err)
	}
	if _, err := db.Turn(ctx, "t1"); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("its turn: %v", err)
	}
	if err := db.DeleteSession(ctx, "old"); !errors.Is(err, orchestrator.ErrNoSession) {
		t.Errorf("deleted twice: %v", err)
	}
	same(t, "its summary", get[orchestrator.Summary](t)(db.Summary(ctx, "old")), orchestrator.Summary{})
}

// A fork has the turns up to the fork and its own. The original session does not get the fork's turns.
func TestForkSession(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "a", chatA, noon)
	storeEndedTurn(t, db, "a", "a1", "one", "-")
	storeEndedTurn(t, db, "a", "a2", "two", "-")
	must(t, db.ForkSession(ctx, orchestrator.Session{ID: "b", Conversation: chatA, Created: noon}, "a1"))
	storeEndedTurn(t, db, "a", "a3", "three", "-")
	storeEndedTurn(t, db, "b", "b1", "other", "-")
	must(t, db.ForkSession(ctx, orchestrator.Session{ID: "c", Conversation: chatA, Created: noon}, "b1"))
	storeEndedTurn(t, db, "c", "c1", "last", "-")
	for _, tc := range []struct {
		session orchestrator.SessionID
		limit   int
		want    string
	}{
		{"a", 9, "[a1 a2 a3]"}, {"b", 9, "[a1 b1]"}, {"c", 9, "[a1 b1 c1]"}, {"c", 2, "[b1 c1]"}, {"c", 1, "[c1]"},
		{"nowhere", 3, "[]"},
	} {
		turns, err := db.History(ctx, tc.session, tc.limit)
		var ids []cli.TurnID
		for _, turn := range turns {
			ids = append(ids, turn.ID)
		}
		if err != nil || fmt.Sprint(ids) != tc.want {
			t.Errorf("%s has %v, %v; want %s", tc.session, ids, err, tc.want)
		}
	}
	if s, err := db.Session(ctx, "b"); err != nil || s.Totals.Messages != 2 {
		t.Errorf("the fork counts %d messages, %v", s.Totals.Messages, err)
	}
	if err := db.ForkSession(ctx, orchestrator.Session{ID: "d", Conversation: chatA},
		"none"); !errors.Is(err, orchestrator.ErrNoTurn) {
		t.Errorf("a fork at no turn: %v", err)
	}
}

// BenchmarkFindSessions searches a hundred thousand turns. "of 50 ms" is the fraction of the target of 50 ms.
func BenchmarkFindSessions(b *testing.B) {
	db := newDB(b)
	ctx := b.Context()
	const perSession = 1000
	for s := range 100 {
		id := orchestrator.SessionID(fmt.Sprint("s", s))
		var turns []orchestrator.Turn
		for i := range perSession {
			text := fmt.Sprintf("please look at the parser of module %d, which reads line %d wrongly since yesterday",
				s, i)
			if i%97 == 0 {
				text += " zebra"
			}
			turns = append(turns, orchestrator.Turn{
				ID: cli.TurnID(fmt.Sprint(id, "-", i)), Session: id, State: orchestrator.TurnDone, Queued: noon,
				Ended: noon, Delivered: true, Agent: "claude",
				Prompt:  orchestrator.Prompt{Conversation: chatA, Text: text},
				Outcome: orchestrator.Outcome{Text: strings.Repeat("It reads runes now, and the tests pass. ", 10)},
			})
		}
		err := db.storeSession(ctx, orchestrator.Session{ID: id, Conversation: chatA, Title: "parser", Dir: "/src",
			Created: noon, Used: noon}, turns)
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, words := range []string{"zebra", "parser runes", "nothing"} {
		b.Run(words, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: chatA, Words: words,
					Limit: 8}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/0.05, "of-50ms")
		})
	}
}

// storeSession stores a session with ended turns.
func (db *DB) storeSession(ctx context.Context, s orchestrator.Session, turns []orchestrator.Turn) error {
	err := db.write(ctx, func(t tx) error {
		if err := t.insertSession(s); err != nil {
			return err
		}
		for _, turn := range turns {
			if err := t.insertEndedTurn(turn); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(fmt.Sprintf("store session %s", s.ID), err)
}

func (t tx) insertEndedTurn(turn orchestrator.Turn) error {
	if err := t.insertTurn(turn); err != nil {
		return err
	}
	outcome, err := encodeOutcome(turn.Outcome)
	if err != nil {
		return err
	}
	state := turn.State
	if state == orchestrator.TurnSteered {
		state = orchestrator.TurnCancelled
	}
	const end = `UPDATE turns SET state = ?, steered_into = ?, ended = ?, answer = ?, outcome = ?, delivered = 1
		WHERE id = ?`
	_, err = t.Exec(end, string(state), string(turn.Entry.Into), millis(turn.Ended), turn.Outcome.Text, outcome,
		string(turn.ID))
	return err
}

// An agent's title replaces only the title that it was compared with, never one that a user chose in between.
func TestTitleSession(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	newSession(t, db, "s", chatA, noon)
	must(t, db.SaveSession(ctx, orchestrator.Session{ID: "s", Title: "a prompt"}))
	for _, c := range []struct{ from, to, want string }{
		{"a prompt", "the agent's", "the agent's"}, {"a prompt", "a late one", "the agent's"},
	} {
		must(t, db.TitleSession(ctx, "s", c.from, c.to))
		if s, err := db.Session(ctx, "s"); err != nil || s.Title != c.want {
			t.Errorf("from %q to %q: %q, %v", c.from, c.to, s.Title, err)
		}
	}
}

// checkUse checks that a session cannot be deleted, and why.
func checkUse(t *testing.T, db *DB, id orchestrator.SessionID, want orchestrator.SessionInUse) {
	t.Helper()
	for name, err := range map[string]error{
		"CheckUnused": db.CheckUnused(t.Context(), id), "DeleteSession": db.DeleteSession(t.Context(), id),
	} {
		use := &orchestrator.SessionInUse{}
		if !errors.As(err, &use) || !errors.Is(err, orchestrator.ErrSessionInUse) || *use != want {
			t.Errorf("%s of %s returns %v with %+v, want %+v", name, id, err, use, want)
		}
	}
}
