package store

import (
	"context"
	"time"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// SendRates lists what SaveSendRate stored.
func (db *DB) SendRates(ctx context.Context) ([]orchestrator.SendRate, error) {
	all, err := sqlite.Many(ctx, db.file, func(row sqlite.Row) (r orchestrator.SendRate, err error) {
		var until int64
		err = row.Scan(&r.Chat, &r.Every, &r.Burst, &until)
		r.Until = time.UnixMilli(until)
		return r, err
	}, `SELECT chat, every, burst, until FROM rates ORDER BY chat`)
	return all, wrap("list the rates of chats", err)
}

// SaveSendRate stores the rate of a chat in place of the one before.
func (db *DB) SaveSendRate(ctx context.Context, r orchestrator.SendRate) error {
	return wrap("save the rate of a chat", db.write(ctx, func(t tx) error {
		_, err := t.Exec(`INSERT INTO rates (chat, every, burst, until) VALUES (?, ?, ?, ?)
			ON CONFLICT (chat) DO UPDATE SET every = excluded.every, burst = excluded.burst, until = excluded.until`,
			r.Chat, int64(r.Every), r.Burst, millis(r.Until))
		return err
	}))
}
