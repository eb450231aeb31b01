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

// The JSON in the database has its own types, or the tags of nouns, so that renaming a field of the domain loses nothing stored.

func encode(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode JSON to store: %w", err)
	}
	return string(text), nil
}

// encodeList gives JSON, and nothing for an empty list.
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

// millis is how times are kept; a zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// blob keeps nil bytes from becoming NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// atMost keeps a negative limit from meaning "all", as it does to SQLite.
func atMost(limit int) int { return max(limit, 0) }

// scan reads rows into values. fields gives where the columns of a row are in a value, in their order; what it gives inserts a row too.
func scan[T any](fields func(*T) []any) func(sqlite.Row) (T, error) {
	return func(row sqlite.Row) (v T, err error) {
		err = row.Scan(fields(&v)...)
		return v, err
	}
}

// moment is a time as it is kept.
type moment struct{ at *time.Time }

// Scan implements sql.Scanner.
func (m moment) Scan(kept any) error {
	ms, ok := kept.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", kept)
	}
	*m.at = instant(ms)
	return nil
}

// Value implements driver.Valuer.
func (m moment) Value() (driver.Value, error) { return millis(*m.at), nil }

// list is a list as it is kept, in JSON; empty for none.
type list[T any] struct{ of *[]T }

// Scan implements sql.Scanner.
func (l list[T]) Scan(kept any) error {
	text, ok := kept.(string)
	if !ok {
		return fmt.Errorf("a list is stored as %T", kept)
	}
	return decode(text, l.of)
}

// Value implements driver.Valuer.
func (l list[T]) Value() (driver.Value, error) { return encodeList(*l.of) }

// insert stores a row of fields, which are those of columns. more follows in the statement.
func (t tx) insert(table, columns, more string, fields ...any) (int64, error) {
	marks := strings.Repeat("?, ", len(fields)-1) + "?"
	return t.Exec("INSERT INTO "+table+" ("+columns+") VALUES ("+marks+") "+more, fields...)
}

// replacing has an insert of columns take the place of the row with the same key, which is one column or several.
func replacing(key, columns string) string {
	var set []string
	for _, column := range strings.Split(columns, ", ") {
		if !slices.Contains(strings.Split(key, ", "), column) {
			set = append(set, column+" = excluded."+column)
		}
	}
	return "ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// put stores a row in the place of the one with its key.
func (t tx) put(table, key, columns string, fields ...any) error {
	_, err := t.insert(table, columns, replacing(key, columns), fields...)
	return err
}

// known has SQL's complaint about a row that is not there be the word that the domain knows; nil for a zero value.
func known[T any](v T, err, word error) (T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		var none T
		return none, word
	}
	return v, err
}

// run is a transaction of one statement.
func (db *DB) run(ctx context.Context, op string, write func(context.Context, func(tx) error) error, query string, args ...any) error {
	return wrap(op, write(ctx, func(t tx) error {
		_, err := t.Exec(query, args...)
		return err
	}))
}

// execOr is Exec for a statement that changes a row; word is the error where it is not there.
func (t tx) execOr(word error, query string, args ...any) error {
	n, err := t.Exec(query, args...)
	if err == nil && n == 0 {
		err = word
	}
	return err
}
