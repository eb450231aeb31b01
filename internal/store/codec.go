package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/internal/store/sqlite"
)

// Only types of this package, and types of package orchestrator with JSON tags, are stored as JSON. Their JSON tags fix
// the stored names, so that a field can be renamed in Go without loss of data.

func encode(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode JSON to store: %w", err)
	}
	return string(text), nil
}

// encodeList returns a list as JSON, or "" for an empty list.
func encodeList[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	return encode(list)
}

func decode(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("decode stored JSON: %w", err)
	}
	return nil
}

// millis converts a time to the stored form, milliseconds since 1970. The zero time becomes 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// blob replaces nil with an empty slice, because SQLite would store nil as NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// nonNegative replaces a negative limit with 0, because SQLite would treat it as no limit.
func nonNegative(limit int) int { return max(limit, 0) }

// scan returns a function that reads a row into a T. For each row, this function calls pointers, which must return the
// addresses of the fields of a T, in the order of the columns.
func scan[T any](pointers func(*T) []any) func(sqlite.Row) (T, error) {
	return func(row sqlite.Row) (v T, err error) {
		err = row.Scan(pointers(&v)...)
		return v, err
	}
}

// timeColumn converts between a time and a column with milliseconds, for reading and writing.
type timeColumn struct{ at *time.Time }

// Scan implements sql.Scanner.
func (m timeColumn) Scan(stored any) error {
	ms, ok := stored.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", stored)
	}
	*m.at = fromMillis(ms)
	return nil
}

// Value implements driver.Valuer.
func (m timeColumn) Value() (driver.Value, error) { return millis(*m.at), nil }

// listColumn converts between a slice and a column with JSON, for reading and writing. An empty slice is stored as "".
type listColumn[T any] struct{ of *[]T }

// Scan implements sql.Scanner.
func (l listColumn[T]) Scan(stored any) error {
	text, ok := stored.(string)
	if !ok {
		return fmt.Errorf("a list is stored as %T", stored)
	}
	return decode(text, l.of)
}

// Value implements driver.Valuer.
func (l listColumn[T]) Value() (driver.Value, error) { return encodeList(*l.of) }

// insert inserts a row, and returns the number of inserted rows. The parameter clause is the end of the statement, for
// example a conflict clause.
func (t tx) insert(table, columns, clause string, fields ...any) (int64, error) {
	marks := strings.Repeat("?, ", len(fields)-1) + "?"
	return t.Exec("INSERT INTO "+table+" ("+columns+") VALUES ("+marks+") "+clause, fields...)
}

// onConflictReplace returns the conflict clause of an insert that replaces the row with the same key. The key consists
// of one column, or of several columns separated by ", ".
func onConflictReplace(key, columns string) string {
	var set []string
	for _, column := range strings.Split(columns, ", ") {
		if !slices.Contains(strings.Split(key, ", "), column) {
			set = append(set, column+" = excluded."+column)
		}
	}
	return "ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// upsert inserts a row, or replaces the row with the same key.
func (t tx) upsert(table, key, columns string, fields ...any) error {
	_, err := t.insert(table, columns, onConflictReplace(key, columns), fields...)
	return err
}

// mapNoRows replaces the error sql.ErrNoRows with errMissing, which may be nil.
func mapNoRows[T any](v T, err, errMissing error) (T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		var none T
		return none, errMissing
	}
	return v, err
}

// exec runs one statement in its own transaction. The caller chooses how durable the write is, with a method such as
// db.writeLazily.
func (db *DB) exec(
	ctx context.Context, op string, write func(context.Context, func(tx) error) error, query string, args ...any,
) error {
	return wrap(op, write(ctx, func(t tx) error {
		_, err := t.Exec(query, args...)
		return err
	}))
}

// execExisting runs a statement. It returns errMissing if the statement changes no row.
func (t tx) execExisting(errMissing error, query string, args ...any) error {
	n, err := t.Exec(query, args...)
	if err == nil && n == 0 {
		err = errMissing
	}
	return err
}
