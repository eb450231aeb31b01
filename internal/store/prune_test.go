package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

func TestPrune(t *testing.T) {
	ctx := t.Context()
	clock := noon.Add(-48 * time.Hour)
	db, err := Open(ctx, filepath.Join(t.TempDir(), "ductor.db"), Options{Now: func() time.Time { return clock }})
	must(t, err)
	defer db.Close()
	fill := func(prefix string, first int64) {
		get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: first}, {ID: first + 1,
			Raw: []byte("x")}}))
		must(t, db.FinishUpdates(ctx, []int64{first}))
		for _, state := range []orchestrator.SendState{orchestrator.Pending, orchestrator.Sending, orchestrator.Sent,
			orchestrator.Unknown, orchestrator.Failed} {
			m := orchestrator.Message{Key: prefix + string(state), State: state}
			if state == orchestrator.Pending || state == orchestrator.Sending {
				m.Content = []byte(prefix)
			}
			must(t, db.SaveMessage(ctx, m))
		}
		for _, name := range []cli.TurnID{"shown", "hidden"} {
			turn := newTurn(cli.TurnID(prefix) + name)
			turn.Queued = clock
			runTurn(t, db, turn, done("x"))
			must(t, db.SaveCard(ctx, string(turn.ID), []byte("x")))
			must(t, db.SaveMessage(ctx, orchestrator.Message{Key: "card/" + string(turn.ID), Turn: turn.ID,
				State: orchestrator.Sent, ID: 1}))
		}
		must(t, db.MarkDelivered(ctx, cli.TurnID(prefix)+"shown"))
	}
	fill("old", 10)
	clock = noon
	fill("new", 20)

	pruned, err := db.Prune(ctx, noon.Add(-24*time.Hour))
	must(t, err)
	same(t, "deleted", pruned, Pruned{Updates: 1, Messages: 4, Cards: 1})
	for turn, kept := range map[cli.TurnID]bool{"oldshown": false, "oldhidden": true, "newshown": true,
		"newhidden": true} {
		content := get[[]byte](t)(db.LoadCard(ctx, string(turn)))
		parts := get[[]orchestrator.Message](t)(db.MessagesOf(ctx, turn))
		if (content != nil) != kept || (len(parts) > 0) != kept {
			t.Errorf("card %s: content %q, parts %v; should it be there: %v", turn, content, parts, kept)
		}
	}
	if n := len(get[[]orchestrator.Turn](t)(db.OpenTurns(ctx))); n != 2 {
		t.Errorf("%d open turns, want 2", n)
	}
	if notices := count(t, db, `SELECT count(*) FROM messages WHERE turn = ''`); notices != 7 {
		t.Errorf("%d notices, want the 5 new and the 2 old that may still have to go out", notices)
	}
}

// TestPruneDeletesDrafts tests that content under names that are not turns is deleted by the time of its last save.
func TestPruneDeletesDrafts(t *testing.T) {
	ctx, clock := t.Context(), noon.Add(-48*time.Hour)
	db, err := Open(ctx, filepath.Join(t.TempDir(), "ductor.db"), Options{Now: func() time.Time { return clock }})
	must(t, err)
	defer db.Close()
	startTurn(t, db, "turn") // still running
	for _, name := range []string{"turn", "ask:old", "cron:touched"} {
		must(t, db.SaveCard(ctx, name, []byte("x")))
	}
	clock = noon
	must(t, db.SaveCard(ctx, "cron:touched", []byte("y")))
	must(t, db.SaveCard(ctx, "edit:new", []byte("x")))

	same(t, "deleted", get[Pruned](t)(db.Prune(ctx, noon.Add(-24*time.Hour))), Pruned{Drafts: 1})
	for name, kept := range map[string]bool{"turn": true, "ask:old": false, "cron:touched": true, "edit:new": true} {
		same(t, name, get[[]byte](t)(db.LoadCard(ctx, name)) != nil, kept)
	}
}

func TestPruneWorksInBatches(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	var updates []orchestrator.Update
	for id := int64(1); id <= 3*pruneBatch; id++ {
		updates = append(updates, orchestrator.Update{ID: id})
	}
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, updates))
	same(t, "deleted", get[Pruned](t)(db.Prune(ctx, noon.Add(time.Hour))), Pruned{Updates: 3 * pruneBatch})
}

// TestConcurrentCallers lets all kinds of callers use one database, for the race detector.
func TestConcurrentCallers(t *testing.T) {
	db, ctx := newDB(t), t.Context()
	const workers, turns = 8, 15
	fails := make(chan error, workers+1)
	for w := range workers {
		go func() { fails <- work(ctx, db, w, turns) }()
	}
	go func() {
		var errs []error
		for range 30 {
			_, err := db.Prune(ctx, noon.Add(-time.Hour))
			_, err2 := db.OpenTurns(ctx)
			_, err3 := db.OwedMessages(ctx)
			errs = append(errs, err, err2, err3)
		}
		fails <- errors.Join(errs...)
	}()
	for range workers + 1 {
		if err := <-fails; err != nil {
			t.Error(err)
		}
	}
	for w := range workers {
		s := get[orchestrator.Session](t)(db.Session(ctx, orchestrator.SessionID(fmt.Sprint("s", w))))
		if s.Totals.Messages != turns {
			t.Errorf("session %d counts %d messages, want %d", w, s.Totals.Messages, turns)
		}
	}
	if left := get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 1)); len(left) != 0 {
		t.Errorf("update %d is left unhandled", left[0].ID)
	}
}

func work(ctx context.Context, db *DB, w, turns int) error {
	conv := orchestrator.ConversationID{Chat: int64(w)}
	session := orchestrator.SessionID(fmt.Sprint("s", w))
	if err := db.CreateSession(ctx, orchestrator.Session{ID: session, Conversation: conv, Created: noon}); err != nil {
		return err
	}
	for i := range turns {
		update := int64(w*turns + i + 1)
		turn := newTurn(cli.TurnID(fmt.Sprintf("t%d.%d", w, i)), update)
		turn.Session, turn.Prompt.Conversation = session, conv
		ok, errStart := false, error(nil)
		_, err := db.AppendUpdates(ctx, []orchestrator.Update{{ID: update, Raw: []byte("x")}})
		if err == nil {
			err = db.EnqueueTurn(ctx, turn)
		}
		if err == nil {
			ok, errStart = db.StartTurn(ctx, turn, cli.Start{})
		}
		if err != nil || errStart != nil || !ok {
			return fmt.Errorf("turn %s: %w, %w, started %v", turn.ID, err, errStart, ok)
		}
		c, err := db.Conversation(ctx, conv)
		if err != nil || c.Session != session {
			return fmt.Errorf("conversation %d is in session %q: %w", w, c.Session, err)
		}
		if err := errors.Join(db.FinishTurn(ctx, turn.ID, noon, done("x")),
			db.MarkDelivered(ctx, turn.ID)); err != nil {
			return err
		}
	}
	return nil
}
