package store

import (
	"context"
	"database/sql"
	"errors"

	"ductor/internal/store/sqlite"
)

// SaveCard stores the content of a turn's card, in place of what was stored before. It is lazy. What is kept under a name that is
// no turn's, such as a draft, is forgotten by its age; see Prune.
func (db *DB) SaveCard(ctx context.Context, turn string, content []byte) error {
	now := millis(db.now())
	err := db.writeLazily(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO cards (turn, content, saved) VALUES (?, ?, ?)
			ON CONFLICT (turn) DO UPDATE SET content = excluded.content, saved = excluded.saved`, turn, blob(content), now)
		return err
	})
	return wrap("save card of turn "+turn, err)
}

// LoadCard returns what SaveCard stored; nil for what it never stored.
func (db *DB) LoadCard(ctx context.Context, turn string) ([]byte, error) {
	content, err := sqlite.One(ctx, db.file, sqlite.Value[[]byte], `SELECT content FROM cards WHERE turn = ?`, turn)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return content, wrap("load card of turn "+turn, err)
}
