package store

import (
	"context"
	"fmt"

	"ductor/cli"
	"ductor/orchestrator"
)

// ExtendAnswer adds a text to the answer of a turn that has ended; see orchestrator.Store.
func (db *DB) ExtendAnswer(ctx context.Context, id cli.TurnID, text string) (orchestrator.Turn, error) {
	err := db.write(ctx, func(t tx) error {
		return t.changeEnded(id, `answer = answer || ?`, text)
	})
	if err != nil {
		return orchestrator.Turn{}, wrap(fmt.Sprintf("add to the answer of turn %s", id), err)
	}
	return db.Turn(ctx, id)
}

// AmendOutcome implements orchestrator.Store. It need not outlive a power failure: without it the chat offers no Undo.
func (db *DB) AmendOutcome(ctx context.Context, id cli.TurnID, o orchestrator.Outcome) error {
	op := fmt.Sprintf("amend the outcome of turn %s", id)
	outcome, err := encodeOutcome(o)
	if err != nil {
		return wrap(op, err)
	}
	return wrap(op, db.share(ctx, func(t tx) error {
		return t.changeEnded(id, `outcome = ?`, outcome)
	}))
}

// MarkDelivered records that the chat shows the outcome. ErrNoTurn for an id that is not there; an error for
// a turn that has not ended. It shares a transaction: to show an outcome once more changes nothing in the chat.
func (db *DB) MarkDelivered(ctx context.Context, id cli.TurnID) error {
	return wrap(fmt.Sprintf("mark turn %s delivered", id), db.share(ctx, func(t tx) error {
		return t.changeEnded(id, `delivered = 1`)
	}))
}

// changeEnded changes a turn that has ended.
func (t tx) changeEnded(id cli.TurnID, set string, args ...any) error {
	n, err := t.Exec(`UPDATE turns SET `+set+` WHERE id = ? AND state NOT IN ('queued', 'running')`, append(args, string(id))...)
	if err == nil && n == 0 {
		err = t.whyNot(id, "ended")
	}
	return err
}
