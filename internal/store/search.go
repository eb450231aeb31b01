package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// A search for words becomes slower with each entry that it reads. If fewer than smallScope entries are in the scope of
// the search, it reads all of them. Otherwise it reads only the newest maxHits entries that contain the words.
const (
	smallScope = 10_000 // entries
	maxHits    = 10_000 // entries
)

type arguments []any

// add adds an argument, and returns the parameter (such as ?3) that refers to it.
func (a *arguments) add(value any) string {
	*a = append(*a, value)
	return fmt.Sprintf("?%d", len(*a))
}

// addList adds a list as an argument, and returns a subquery for its values.
func addList[T any](a *arguments, list []T) string {
	raw, _ := json.Marshal(slices.Concat([]T{}, list)) // numbers and strings can always be encoded
	return "(SELECT value FROM json_each(" + a.add(string(raw)) + "))"
}

// below returns an SQL condition for sessions whose directory is one of dirs or below one of them.
func (a *arguments) below(dirs []string) string {
	return "EXISTS (SELECT 1 FROM " + addList(a, dirs) + ` AS below
		WHERE dir = below.value OR substr(dir, 1, length(below.value) + 1) = below.value || '/')`
}

// scope returns an SQL condition for the sessions that a query includes.
func (a *arguments) scope(q orchestrator.SessionQuery) string {
	in, all := q.Conversation, []string{}
	if q.Scope.Conversation != (orchestrator.ConversationID{}) {
		in = q.Scope.Conversation
	}
	here := fmt.Sprintf("(chat = %s AND topic = %s)", a.add(in.Chat), a.add(in.Topic))
	switch {
	case q.Elsewhere != 0:
		all = append(all, "NOT "+here, "person = "+a.add(int64(q.Elsewhere)),
			"id NOT IN (SELECT o.session FROM own_sessions o JOIN jobs j ON j.id = o.name)")
	default:
		all = append(all, fmt.Sprintf("(%s OR chat IN %s OR chat IN %s AND %s AND NOT %s)", here,
			addList(a, q.Scope.Chats), addList(a, q.Scope.Shared), a.below(q.Scope.Dirs), a.below(q.Scope.Except)))
	}
	if q.Dir != "" {
		all = append(all, "dir = "+a.add(q.Dir))
	}
	if q.ID != "" {
		return strings.Join(append(all, "id = "+a.add(string(q.ID))), " AND ")
	}
	return strings.Join(append(all, "archived = "+a.add(q.Archived)), " AND ")
}

// FindSessions searches the sessions in a scope. If q.Elsewhere is a user, it searches this user's sessions in all
// other conversations.
func (db *DB) FindSessions(
	ctx context.Context, q orchestrator.SessionQuery,
) (found []orchestrator.FoundSession, more bool, err error) {
	var all []listedSession
	if words := ftsQuery(q.Words); words == "" {
		var args arguments
		all, err = sqlite.Many(ctx, db.file, scanListed, `SELECT `+sessionColumns+`, '', 0 FROM sessions WHERE `+
			args.scope(q)+listedOrder+args.page(q), args...)
	} else if all, err = db.findWords(ctx, q, words); err == nil {
		err = db.quote(ctx, words, all)
	}
	if more = len(all) > q.Limit; more {
		all = all[:q.Limit]
	}
	for _, s := range all {
		found = append(found, s.FoundSession)
	}
	return found, more, wrap(fmt.Sprintf("find sessions of %s", q.Conversation.Key()), err)
}

const listedOrder = ` ORDER BY pinned DESC, max(used, created) DESC, sessions.seq DESC`

func (a *arguments) page(q orchestrator.SessionQuery) string {
	return fmt.Sprintf(" LIMIT %s OFFSET %s", a.add(q.Limit+1), a.add(q.Offset))
}

// findWords finds the sessions whose title or entries contain the words.
func (db *DB) findWords(ctx context.Context, q orchestrator.SessionQuery, words string) ([]listedSession, error) {
	var sized arguments
	entries, err := sqlite.One(ctx, db.file, sqlite.Value[int], `SELECT count(*) FROM (SELECT 1
		FROM (SELECT id FROM sessions WHERE `+sized.scope(q)+`) s CROSS JOIN turns t ON t.session = s.id
		LIMIT `+sized.add(smallScope)+`)`, sized...)
	if err != nil {
		return nil, err
	}
	statement, args := searchStatement(q, words, entries < smallScope)
	return sqlite.Many(ctx, db.file, scanListed, statement, args...)
}

// searchStatement returns the statement for a search by words. In a small scope, which has fewer than smallScope
// entries, the statement searches all entries.
func searchStatement(q orchestrator.SessionQuery, words string, small bool) (string, arguments) {
	var args arguments
	scope := args.scope(q)
	sessions := `(SELECT id FROM sessions WHERE ` + scope + `)`
	hits := `SELECT docid FROM turns_text WHERE turns_text MATCH ` + args.add(words)
	if small {
		hits += ` AND +docid IN (SELECT t.seq FROM ` + sessions + ` s CROSS JOIN turns t ON t.session = s.id)`
	} else {
		hits += ` LIMIT ` + args.add(maxHits)
	}
	return `WITH newest AS MATERIALIZED (SELECT t.session, max(t.seq) AS seq
			FROM (` + hits + `) h CROSS JOIN turns t ON t.seq = h.docid
			WHERE t.session IN ` + sessions + ` GROUP BY t.session)
		SELECT ` + sessionColumns + `, coalesce((SELECT t.id FROM turns t WHERE t.seq = newest.seq), ''),
			coalesce(newest.seq, 0)
		FROM sessions LEFT JOIN newest ON newest.session = sessions.id
		WHERE ` + scope + ` AND (newest.session IS NOT NULL OR title LIKE ` + args.add(likePattern(q.Words)) +
		` ESCAPE '\')` + listedOrder + args.page(q), args
}

// quote adds excerpts to the found sessions. It runs only one full-text query for all sessions, because such a query is
// slow.
func (db *DB) quote(ctx context.Context, words string, found []listedSession) error {
	var hits []int64
	for _, s := range found {
		if s.hit != 0 {
			hits = append(hits, s.hit)
		}
	}
	if len(hits) == 0 {
		return nil
	}
	type excerpt struct {
		hit  int64
		text string
	}
	args := arguments{words, slices.Min(hits), slices.Max(hits)}
	all, err := sqlite.Many(ctx, db.file, func(row sqlite.Row) (e excerpt, err error) {
		err = row.Scan(&e.hit, &e.text)
		return e, err
	}, `SELECT docid, snippet(turns_text, '', '', '…', -1, 16) FROM turns_text WHERE turns_text MATCH ?1
		AND docid >= ?2 AND docid <= ?3 AND +docid IN `+addList(&args, hits), args...)
	for _, e := range all {
		i := slices.IndexFunc(found, func(s listedSession) bool { return s.hit == e.hit })
		found[i].Excerpt = strings.Join(strings.Fields(e.text), " ")
	}
	return err
}

// ftsQuery returns a full-text query that finds texts with all the words. A word of three letters or more also finds
// longer words with this beginning. All words are quoted, because words such as OR are operators of the query language.
func ftsQuery(words string) string {
	var terms []string
	for _, w := range strings.FieldsFunc(words, func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	}) {
		if utf8.RuneCountInString(w) >= 3 {
			w += "*"
		}
		terms = append(terms, `"`+w+`"`)
	}
	return strings.Join(terms, " ")
}

// likePattern returns a LIKE pattern for titles that contain words. It escapes wildcards.
func likePattern(words string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.TrimSpace(words)) + "%"
}

type listedSession struct {
	orchestrator.FoundSession
	hit int64 // row ID of the newest entry that contains the words, or 0
}

func scanListed(row sqlite.Row) (s listedSession, err error) {
	s.Session, err = scanSessionAnd(row, &s.Turn, &s.hit)
	return s, err
}

// GroupsOf implements orchestrator.SessionStore.
func (db *DB) GroupsOf(ctx context.Context, user orchestrator.PersonID) ([]int64, error) {
	all, err := sqlite.Many(ctx, db.file, sqlite.Value[int64],
		`SELECT DISTINCT chat FROM turns WHERE person = ? AND chat < 0`, int64(user))
	return all, wrap(fmt.Sprintf("list the groups of user %d", user), err)
}
