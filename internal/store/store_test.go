package store

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/orchestrator"
)

// Conversations and the time of the tests.
var (
	chatA = orchestrator.ConversationID{Chat: 7}
	chatB = orchestrator.ConversationID{Chat: -100123, Topic: 42}
	noon  = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
)

// newDB opens a new database whose clock is fixed at noon.
func newDB(t testing.TB) *DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "ductor.db"))
}

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// must fails the test if a step fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// get is must for a step with a result.
func get[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func newSession(
	t testing.TB, db *DB, id orchestrator.SessionID, conv orchestrator.ConversationID, at time.Time,
) orchestrator.Session {
	t.Helper()
	s := orchestrator.Session{ID: id, Conversation: conv, Title: "fix the build", Dir: "/src", Created: at, Used: at,
		AgentSessions: map[orchestrator.AgentEnv]orchestrator.AgentSession{}}
	must(t, db.CreateSession(t.Context(), s))
	return s
}

func newTurn(id cli.TurnID, updates ...int64) orchestrator.Turn {
	return orchestrator.Turn{ID: id, State: orchestrator.TurnQueued, Queued: noon,
		Prompt: orchestrator.Prompt{Conversation: chatA, Person: 9, Text: "hello", Message: 55, Updates: updates}}
}

// runTurn takes a turn through all states up to its outcome.
func runTurn(t testing.TB, db *DB, turn orchestrator.Turn, o orchestrator.Outcome) {
	t.Helper()
	ctx := context.Background()
	must(t, db.EnqueueTurn(ctx, turn))
	turn.Started = turn.Queued.Add(time.Second)
	if ok := get[bool](t)(db.StartTurn(ctx, turn, cli.Start{})); !ok {
		t.Fatalf("turn %s did not start", turn.ID)
	}
	must(t, db.FinishTurn(ctx, turn.ID, turn.Queued.Add(time.Minute), o))
}

func done(text string) orchestrator.Outcome {
	return orchestrator.Outcome{State: orchestrator.TurnDone, Text: text}
}
