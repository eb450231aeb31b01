package sqlite

import (
	"context"
	"regexp"
	"strings"
	"sync"
)

// rowCache caches rows that ductor reads for every message. A statement that changes a table invalidates all cached
// rows of this table. If the statement runs through Tx.ExecRow, it invalidates only the named row.
type rowCache struct {
	mu      sync.Mutex
	count   uint64            // number of recorded changes
	changes map[string]uint64 // number of the last change, by the name of a table, or by table and row; see cacheKey
	rows    map[string]cachedRow
}

// cachedRow is a value and the number of the last change that affected it.
type cachedRow struct {
	value any
	last  uint64
}

// maxCached limits the number of cached rows. The map of changes may have twice as many entries.
const maxCached = 1024

// maxCachedBytes limits the length of a cached []byte. Longer values are not cached.
const maxCachedBytes = 1 << 10

func newRowCache() *rowCache {
	return &rowCache{changes: map[string]uint64{}, rows: map[string]cachedRow{}}
}

// everyTable is the table name that stands for all tables. A rollback invalidates the cached rows of all tables.
const everyTable = "*"

// allRows is the Source.Name that stands for all rows of the tables.
const allRows = "*"

// invalidate records a change of a table, or of one row of the table if row is not empty.
func (k *rowCache) invalidate(table, row string) {
	if table == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.changes) >= 2*maxCached {
		clear(k.changes)
		table, row = everyTable, ""
	}
	k.count++
	k.changes[cacheKey(table, row)] = k.count
	if row != "" {
		k.changes[cacheKey(table, allRows)] = k.count
	}
}

func cacheKey(table, row string) string {
	if row == "" {
		return table
	}
	return table + "/" + row
}

// get returns the cached value. It returns nil if the value is missing or outdated. It also returns the number of the
// last change of the row.
func (k *rowCache) get(of Source) (value any, last uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last = k.changes[everyTable]
	for _, table := range of.Tables {
		last = max(last, k.changes[table], k.changes[cacheKey(table, of.Name)])
	}
	if r, ok := k.rows[cacheKey(of.Tables[0], of.Name)]; ok && r.last == last {
		return r.value, last
	}
	return nil, last
}

func (k *rowCache) store(of Source, row cachedRow) {
	if data, ok := row.value.([]byte); ok && len(data) > maxCachedBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.rows) >= maxCached {
		clear(k.rows)
	}
	k.rows[cacheKey(of.Tables[0], of.Name)] = row
}

// Source identifies a cached row. Tables are the tables from which the row is read. Tx.ExecRow uses Name to invalidate
// the row.
type Source struct {
	Name   string
	Tables []string
}

// OneCached is like One, but caches the value until a statement changes the row. Callers share the value and must not
// change it.
func OneCached[T any](ctx context.Context, db *DB, of Source, scan func(Row) (T, error), query string,
	args ...any) (T, error) {
	return cached(db, of, func() (T, error) { return One(ctx, db, scan, query, args...) })
}

// ManyCached is like Many, but caches the rows until a statement changes one of the tables. Callers share the rows and
// must not change them.
func ManyCached[T any](ctx context.Context, db *DB, tables []string, scan func(Row) (T, error), query string,
	args ...any) ([]T, error) {
	return cached(db, Source{Name: allRows, Tables: tables}, func() ([]T, error) {
		return Many(ctx, db, scan, query, args...)
	})
}

// cached returns the cached value. If there is none, it calls read and caches the result, unless read fails.
func cached[T any](db *DB, of Source, read func() (T, error)) (T, error) {
	if db.writer == nil { // read-only; another process may change the row
		return read()
	}
	found, last := db.writer.cache.get(of)
	if v, ok := found.(T); ok {
		return v, nil
	}
	v, err := read()
	if err == nil {
		db.writer.cache.store(of, cachedRow{v, last})
	}
	return v, err
}

// ExecRow is like Exec, for a statement that changes only one row. It invalidates the cached row whose Source.Name is
// the given one.
func (t *Tx) ExecRow(row, query string, args ...any) (int64, error) {
	p, err := t.prepare(query)
	if err != nil {
		return 0, err
	}
	t.w.cache.invalidate(p.changes, row)
	res, err := p.stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// changePattern matches a statement that changes a table. Its group is the name of the table.
var changePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s*(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO|UPDATE(?:\s+OR\s+\w+)?|` +
		`DELETE\s+FROM)\s+(\w+)`)
})

// changedTable returns the table that a statement changes, "" if it changes none, or everyTable if that is unclear.
func changedTable(query string) string {
	if m := changePattern().FindStringSubmatch(query); m != nil {
		return strings.ToLower(m[1])
	}
	word, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(word) {
	case "SELECT", "BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK":
		return ""
	}
	return everyTable
}
