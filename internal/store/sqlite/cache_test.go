package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// A cached row equals the row in the file after any writes, shared writes, failures and rollbacks.
func TestLawCachedRowsEqualTheFile(t *testing.T) {
	refused := errors.New("refused")
	db := newDB(t)
	ctx := t.Context()
	rapid.Check(t, func(rt *rapid.T) {
		for step := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name")
			content := []byte(fmt.Sprint(step))
			change := rapid.SampledFrom([]func(*Tx) error{
				func(tx *Tx) error {
					_, err := tx.ExecRow(name, `INSERT INTO items (name, content) VALUES (?, ?)
						ON CONFLICT (name) DO UPDATE SET content = excluded.content`, name, content)
					return err
				},
				func(tx *Tx) error { _, err := tx.Exec(`UPDATE items SET content = ?`, content); return err },
				func(tx *Tx) error { _, err := tx.ExecRow(name, `DELETE FROM items WHERE name = ?`, name); return err },
				func(tx *Tx) error {
					var changed string
					err := tx.Row(`UPDATE items SET content = ?
						WHERE name = ? RETURNING name`, []any{content, name}, &changed)
					if errors.Is(err, sql.ErrNoRows) {
						err = nil
					}
					return err
				},
			}).Draw(rt, "change")
			write := rapid.SampledFrom([]func(func(*Tx) error) error{
				func(f func(*Tx) error) error { return db.WriteShared(ctx, f) },
				func(f func(*Tx) error) error { return db.WriteLazily(ctx, f) },
			}).Draw(rt, "write")
			how := rapid.SampledFrom([]string{"made", "refused", "taken back"}).Draw(rt, "how")
			err := write(func(tx *Tx) error {
				err := change(tx)
				switch how {
				case "refused":
					return errors.Join(err, refused)
				case "taken back":
					_, back := tx.Exec("ROLLBACK")
					return errors.Join(err, back, refused)
				}
				return err
			})
			if err != nil && !errors.Is(err, refused) {
				rt.Fatal(err)
			}
			for _, name := range []string{"a", "b"} {
				const query = `SELECT content FROM items WHERE name = ?`
				file := func() string { return found(One(ctx, db, Value[string], query, name)) }
				before := file()
				got := found(OneCached(ctx, db, Source{Name: name, Tables: []string{"items"}}, Value[string],
					query, name))
				// A rolled back shared write is applied again a moment later, perhaps between the two reads.
				if after := file(); got != before && got != after {
					rt.Fatalf("%s is kept as %s, was %s and is %s", name, got, before, after)
				}
			}
			checkAllRows(rt, db)
		}
	})
}

// checkAllRows compares the cached rows of a whole table with the file.
func checkAllRows(t *rapid.T, db *DB) {
	const query = `SELECT name || content FROM items ORDER BY name`
	file := func() string {
		all, err := Many(t.Context(), db, Value[string], query)
		return found(fmt.Sprint(all), err)
	}
	before := file()
	all, err := ManyCached(t.Context(), db, []string{"items"}, Value[string], query)
	if got, after := found(fmt.Sprint(all), err), file(); got != before && got != after {
		t.Fatalf("all rows are kept as %s, were %s and are %s", got, before, after)
	}
}

// found describes the result of reading a row.
func found(content string, err error) string {
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err.Error()
	}
	return fmt.Sprintf("%q (%v)", content, err)
}

// A statement that changedTable does not understand changes every table.
func TestChangedTable(t *testing.T) {
	for query, table := range map[string]string{
		"INSERT INTO a (x) VALUES (1) ON CONFLICT DO UPDATE SET x = 2": "a",
		"insert or ignore into A VALUES (1)":                           "a",
		"\n\tUPDATE a SET x = (SELECT y FROM b)":                       "a",
		"DELETE FROM a WHERE x IN (SELECT x FROM b)":                   "a",
		"REPLACE INTO a VALUES (1)":                                    "a",
		"SELECT x FROM a":                                              "",
		"BEGIN IMMEDIATE":                                              "",
		"ROLLBACK TO share":                                            "",
		"WITH b AS (SELECT 1) INSERT INTO a SELECT * FROM b":           everyTable,
		"ALTER TABLE a ADD COLUMN y":                                   everyTable,
	} {
		if got := changedTable(query); got != table {
			t.Errorf("%q changes %q, want %q", query, got, table)
		}
	}
}

// The cache stays small, although it holds many rows.
func TestLongValuesAreNotCached(t *testing.T) {
	db := newDB(t)
	for name, length := range map[string]int{"short": maxCachedBytes, "long": maxCachedBytes + 1} {
		source := Source{Name: name, Tables: []string{"items"}}
		content := bytes.Repeat([]byte("x"), length)
		must(t, db.WriteLazily(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(insert, name, content)
			return err
		}))
		got, err := OneCached(t.Context(), db, source, Value[[]byte], `SELECT content FROM items WHERE name = ?`, name)
		if err != nil || len(got) != length {
			t.Errorf("%s: %d bytes (%v)", name, len(got), err)
		}
		if cached, _ := db.writer.cache.get(source); (cached != nil) != (name == "short") {
			t.Errorf("%s: cached: %v", name, cached != nil)
		}
	}
}
