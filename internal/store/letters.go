package store

import (
	"context"
	"fmt"

	"ductor/orchestrator"
)

const letterColumns = `id, chat, topic, content, state, message`

// openLetters repeats the condition of the index letters_open: SQLite uses a partial index only where the
// query says so, and letters that went out may be many.
const openLetters = ` AND state IN ('pending', 'sending')`

// PostLetter queues a letter that no update caused, and returns its id. It is pending, whatever l.State says.
func (db *DB) PostLetter(ctx context.Context, l orchestrator.Letter) (int64, error) {
	var id int64
	now := millis(db.now())
	err := db.write.do(ctx, func(t *tx) (err error) {
		id, err = t.post(l, now)
		return err
	})
	return id, wrap("post letter", err)
}

func (t *tx) post(l orchestrator.Letter, now int64) (int64, error) {
	return t.insert(`INSERT INTO letters (chat, topic, content, state, moved) VALUES (?, ?, ?, 'pending', ?)`,
		l.Conversation.Chat, l.Conversation.Topic, blob(l.Content), now)
}

// PendingLetters lists letters not yet tried, in order of id.
func (db *DB) PendingLetters(ctx context.Context) ([]orchestrator.Letter, error) {
	all, err := many(ctx, db.read, scanLetter,
		`SELECT `+letterColumns+` FROM letters WHERE state = 'pending'`+openLetters+` ORDER BY id`)
	return all, wrap("list pending letters", err)
}

// MoveLetter records a letter's state and its message, both as given. A letter that is not there is an error.
func (db *DB) MoveLetter(ctx context.Context, id int64, state orchestrator.SendState, message int) error {
	now := millis(db.now())
	err := db.write.do(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE letters SET state = ?, message = ?, moved = ? WHERE id = ?`,
			string(state), message, now, id)
		if err == nil && n == 0 {
			err = fmt.Errorf("there is no letter %d", id)
		}
		return err
	})
	return wrap(fmt.Sprintf("move letter %d to %s", id, state), err)
}

// LostLetters moves letters found in Sending (ductor died while they were on their way) to Unknown and
// returns them in order of id. Call it once, at start.
func (db *DB) LostLetters(ctx context.Context) ([]orchestrator.Letter, error) {
	var lost []orchestrator.Letter
	now := millis(db.now())
	err := db.write.do(ctx, func(t *tx) error {
		s, err := t.stmt(`SELECT ` + letterColumns + ` FROM letters WHERE state = 'sending'` + openLetters + ` ORDER BY id`)
		if err != nil {
			return err
		}
		if lost, err = collect(t.ctx, s, nil, scanLetter); err != nil || len(lost) == 0 {
			return err
		}
		_, err = t.exec(`UPDATE letters SET state = 'unknown', moved = ? WHERE state = 'sending'`+openLetters, now)
		return err
	})
	if err != nil {
		return nil, wrap("find lost letters", err)
	}
	for i := range lost {
		lost[i].State = orchestrator.Unknown
	}
	return lost, nil
}

func scanLetter(row scanner) (l orchestrator.Letter, err error) {
	err = row.Scan(&l.ID, &l.Conversation.Chat, &l.Conversation.Topic, &l.Content, &l.State, &l.Message)
	return l, err
}
