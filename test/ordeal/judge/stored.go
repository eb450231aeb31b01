package judge

import (
	"database/sql"
	"fmt"

	"ductor/internal/sim/telegram"
)

// Stored contains facts from ductor's database, read when all work is done.
type Stored struct {
	Open map[telegram.ChatID]bool // chats with an open approval or question; nil if reading the database failed
	Owed []string                 // keys of messages that ductor must still send or change
	// Damage lists the findings of checks of the database.
	Damage []string
}

// Read reads a Stored from ductor's database.
func Read(db *sql.DB) (Stored, error) {
	found := Stored{Open: map[telegram.ChatID]bool{}}
	err := each(db, `SELECT DISTINCT chat FROM asks WHERE state = 'open'`, func(chat telegram.ChatID) {
		found.Open[chat] = true
	})
	if err != nil {
		return Stored{}, fmt.Errorf("list the chats of open approvals: %w", err)
	}
	err = each(db, `SELECT key FROM messages WHERE content IS NOT NULL ORDER BY key`, func(key string) {
		found.Owed = append(found.Owed, key)
	})
	if err != nil {
		return Stored{}, fmt.Errorf("list owed messages: %w", err)
	}
	return found, nil
}

func each[T any](db *sql.DB, query string, use func(T)) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			return err
		}
		use(one)
	}
	return rows.Err()
}
