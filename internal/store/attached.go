package store

import (
	"context"
	"fmt"
	"slices"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// searched is how many of the newest turns RecentTurns searches. The limit is necessary because no index lists the
// turns of a conversation.
const searched = 10_000

// RecentTurns omits cancelled turns, because they never ran. It also omits consultations and delegated work, because
// the chat shows them as messages.
func (db *DB) RecentTurns(
	ctx context.Context, in orchestrator.ConversationID, limit int,
) ([]orchestrator.Turn, error) {
	all, err := sqlite.Many(ctx, db.file, scanTurn, `SELECT `+turnColumns+` FROM turns
		WHERE seq > (SELECT coalesce(max(seq), 0) FROM turns) - ? AND chat = ? AND topic = ? AND kind = ''
		AND `+isHistory+`
		ORDER BY seq DESC LIMIT ?`, searched, in.Chat, in.Topic, nonNegative(limit))
	slices.Reverse(all)
	return all, wrap(fmt.Sprintf("list the last turns of %s", in.Key()), err)
}

func (db *DB) NewestSessions(ctx context.Context, limit int) ([]orchestrator.Session, error) {
	all, err := sqlite.Many(ctx, db.file, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE seq IN (
		SELECT seq FROM (SELECT seq, max(used) FROM sessions GROUP BY chat, topic)) ORDER BY used DESC LIMIT ?`,
		nonNegative(limit))
	return all, wrap("list the newest session of each conversation", err)
}
