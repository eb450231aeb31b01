package store

import (
	"context"
	"fmt"

	"ductor/cli"
	"ductor/orchestrator"
)

func (db *DB) ExtendAnswer(ctx context.Context, id cli.TurnID, text string) (orchestrator.Turn, error) {
	err := db.write(ctx, func(t tx) error {
		return t.changeEnded(id, `answer = answer || ?`, text)
	})
	if err != nil {
		return orchestrator.Turn{}, wrap(fmt.Sprintf("extend the answer of turn %s", id), err)
	}
	return db.Turn(ctx, id)
}

// AmendOutcome uses a shared transaction. If a power failure loses the change, the chat only lacks the Undo button.
func (db *DB) AmendOutcome(ctx context.Context, id cli.TurnID, o orchestrator.Outcome) error {
	op := fmt.Sprintf("amend the outcome of turn %s", id)
	outcome, err := encodeOutcome(o)
	if err != nil {
		return wrap(op, err)
	}
	return wrap(op, db.writeShared(ctx, func(t tx) error {
		return t.changeEnded(id, `outcome = ?`, outcome)
	}))
}

// MarkDelivered uses a shared transaction. If a power failure loses the change, ductor shows the outcome a second time.
func (db *DB) MarkDelivered(ctx context.Context, id cli.TurnID) error {
	return wrap(fmt.Sprintf("mark turn %s delivered", id), db.writeShared(ctx, func(t tx) error {
		return t.changeEnded(id, `delivered = 1`)
	}))
}

// changeEnded updates columns of a turn. It returns an error unless the turn has ended.
func (t tx) changeEnded(id cli.TurnID, set string, args ...any) error {
	n, err := t.Exec(`UPDATE turns SET `+set+`
		WHERE id = ? AND state NOT IN ('queued', 'running')`, append(args, string(id))...)
	if err == nil && n == 0 {
		err = t.stateError(id, "ended")
	}
	return err
}
