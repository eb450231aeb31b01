package store

import (
	"context"
	"database/sql"
	"errors"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// SaveCard stores the content of a turn's card, in place of what was stored before. What is kept under a name that is
// no turn's, such as a draft, is forgotten by its age; see Prune.
func (db *DB) SaveCard(ctx context.Context, turn string, content []byte) error {
	now := millis(db.now())
	err := db.write(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO cards (turn, content, saved) VALUES (?, ?, ?)
			ON CONFLICT (turn) DO UPDATE SET content = excluded.content, saved = excluded.saved`, turn, blob(content), now)
		return err
	})
	return wrap("save card of turn "+turn, err)
}

// SaveCardPart records the state and message of one message of a card, both as given.
func (db *DB) SaveCardPart(ctx context.Context, turn string, part int, state orchestrator.SendState, message int) error {
	write := db.write
	if state == orchestrator.Sending { // it must outlive ductor, and be quick; a power failure in this very moment may show a message twice
		write = db.writeLazily
	}
	now := millis(db.now())
	err := write(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO card_parts (turn, part, state, message, saved) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (turn, part) DO UPDATE SET state = excluded.state, message = excluded.message, saved = excluded.saved`,
			turn, part, string(state), message, now)
		return err
	})
	return wrap("save card part of turn "+turn, err)
}

// LoadCard returns what SaveCard and SaveCardPart stored, the parts in order; nil for what was never stored.
func (db *DB) LoadCard(ctx context.Context, turn string) ([]byte, []orchestrator.CardPart, error) {
	// Two reads, not one snapshot: a card has one owner, who is not writing to it while he loads it.
	content, err := sqlite.One(ctx, db.file, sqlite.Value[[]byte], `SELECT content FROM cards WHERE turn = ?`, turn)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, nil, wrap("load card of turn "+turn, err)
	}
	parts, err := sqlite.Many(ctx, db.file, scanPart,
		`SELECT part, state, message FROM card_parts WHERE turn = ? ORDER BY part`, turn)
	if err != nil {
		return nil, nil, wrap("load card of turn "+turn, err)
	}
	return content, parts, nil
}

func scanPart(row sqlite.Row) (p orchestrator.CardPart, err error) {
	err = row.Scan(&p.Part, &p.State, &p.Message)
	return p, err
}
