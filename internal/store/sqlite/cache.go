package sqlite

import (
	"context"
	"regexp"
	"strings"
	"sync"
)

// kept has rows in memory that are read for every message. It forgets them with the statement that changes them: one that
// changes a table with all rows of that table, unless the caller says which row it changes; see Tx.ExecRow.
type kept struct {
	mu      sync.Mutex
	count   uint64            // of changes
	changes map[string]uint64 // the last change, by table, and by table and row
	rows    map[string]keptRow
}

// keptRow is what was read, and the last change by then of all that it depends on.
type keptRow struct {
	value any
	last  uint64
}

// mostKept bounds the rows in memory, and the rows of which changes are known.
const mostKept = 1024

func newKept() *kept { return &kept{changes: map[string]uint64{}, rows: map[string]keptRow{}} }

// everyTable stands for all tables: they change when a transaction is taken back.
const everyTable = "*"

// change notes a change of a table, or of a row of it if row is not empty.
func (k *kept) change(table, row string) {
	if table == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.changes) >= 2*mostKept {
		clear(k.changes)
		table, row = everyTable, ""
	}
	k.count++
	k.changes[rowOf(table, row)] = k.count
}

func rowOf(table, row string) string {
	if row == "" {
		return table
	}
	return table + "/" + row
}

// get gives what is kept of a row, nil for nothing, and the last change of what it depends on.
func (k *kept) get(of Source) (value any, last uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last = k.changes[everyTable]
	for _, table := range of.Tables {
		last = max(last, k.changes[table], k.changes[rowOf(table, of.Name)])
	}
	if r, ok := k.rows[rowOf(of.Tables[0], of.Name)]; ok && r.last == last {
		return r.value, last
	}
	return nil, last
}

func (k *kept) put(of Source, row keptRow) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.rows) >= mostKept {
		clear(k.rows)
	}
	k.rows[rowOf(of.Tables[0], of.Name)] = row
}

// Source names a row, and the tables that it is read from. Its name is that in Tx.ExecRow.
type Source struct {
	Name   string
	Tables []string
}

// Kept is One for a row that is read for every message: it is read once, until a statement changes it. Callers share the
// value, so they must not change it.
func Kept[T any](ctx context.Context, db *DB, of Source, scan func(Row) (T, error), query string, args ...any) (T, error) {
	if db.writer == nil { // another process writes
		return One(ctx, db, scan, query, args...)
	}
	found, last := db.writer.kept.get(of)
	if v, ok := found.(T); ok {
		return v, nil
	}
	v, err := One(ctx, db, scan, query, args...)
	if err == nil {
		db.writer.kept.put(of, keptRow{v, last})
	}
	return v, err
}

// ExecRow is Exec for a statement that changes nothing of its table that Kept gives, except for one row.
func (t *Tx) ExecRow(row, query string, args ...any) (int64, error) {
	p, err := t.prepare(query)
	if err != nil {
		return 0, err
	}
	t.w.kept.change(p.changes, row)
	res, err := p.stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// target finds the table that a statement changes.
var target = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s*(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM)\s+(\w+)`)
})

// changedBy is the table that a statement changes; empty for none.
func changedBy(query string) string {
	if m := target().FindStringSubmatch(query); m != nil {
		return strings.ToLower(m[1])
	}
	word, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(word) {
	case "SELECT", "BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK":
		return ""
	}
	return everyTable
}
