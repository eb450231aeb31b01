package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Salvage copies the rows that can be read of the database at path, which another version of the program may not have written,
// into the tables of db, or into some of them. Rows that are there stay. It returns the tables of which it may lack rows, and
// changes nothing at path. Afterwards DropOrphans is due.
func (db *DB) Salvage(ctx context.Context, path string, only ...string) (lacking []string, err error) {
	err = db.writer.owned(ctx, func(*Tx) error {
		to := db.writer.conn
		tables, err := tablesOf(ctx, to)
		if err != nil {
			return err
		}
		if len(only) > 0 {
			tables = slices.DeleteFunc(tables, func(t table) bool { return !slices.Contains(only, t.name) })
		}
		version, err := pragma(ctx, to, "user_version")
		if err != nil {
			return err
		}
		from, done := openDamaged(ctx, path, version)
		defer done()
		var broken []string
		if from != nil {
			broken = brokenTables(ctx, from)
		}
		// A row may come before the one of another table that it names.
		if _, err := to.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
			return err
		}
		for _, t := range tables {
			whole := from != nil && !slices.Contains(broken, t.name)
			if from != nil {
				read, err := t.salvage(ctx, to, from)
				if err != nil {
					return err
				}
				whole = whole && read
			}
			if !whole {
				lacking = append(lacking, t.name)
			}
		}
		return nil
	})
	return lacking, explain(err)
}

// openDamaged opens a damaged database to read it; nil if that cannot be, or it has another schema.
func openDamaged(ctx context.Context, path string, version int) (conn *sql.Conn, done func()) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 { // beside such a file SQLite deletes the log
		return nil, func() {}
	}
	pool, err := openPool(path, Options{}.filled(), url.Values{"mode": {string(readOnly)}, "_query_only": {"1"}}, 1)
	if err != nil {
		return nil, func() {}
	}
	done = func() { _ = pool.Close() }
	if conn, err = pool.Conn(ctx); err != nil {
		return nil, done
	}
	if has, err := pragma(ctx, conn, "user_version"); err != nil || has != version {
		return nil, func() { _ = conn.Close(); done() }
	}
	return conn, func() { _ = conn.Close(); _ = pool.Close() }
}

// table is a table whose rows are salvaged.
type table struct {
	name    string
	columns []string
	key     []string // in whose order the table is stored
}

// tablesOf lists the tables of a database. The index of words is filled by triggers.
func tablesOf(ctx context.Context, conn *sql.Conn) (all []table, err error) {
	rows, err := conn.QueryContext(ctx, `SELECT l.name, c.name, CASE WHEN l.wr THEN c.pk ELSE 0 END
		FROM pragma_table_list l JOIN pragma_table_info(l.name) c
		WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite_%' ORDER BY l.name, c.cid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name, column string
		var place int
		if err := rows.Scan(&name, &column, &place); err != nil {
			return nil, err
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, table{name: name})
		}
		t := &all[len(all)-1]
		t.columns = append(t.columns, column)
		if place > 0 {
			t.key = slices.Insert(t.key, min(place-1, len(t.key)), column)
		}
	}
	for i := range all {
		if len(all[i].key) == 0 {
			all[i].key = []string{"rowid"}
		}
	}
	return all, rows.Err()
}

// brokenTables names the tables in whose own pages a check finds something wrong. Indexes are made anew.
func brokenTables(ctx context.Context, conn *sql.Conn) (all []string) {
	found, err := conn.QueryContext(ctx, "PRAGMA quick_check")
	if err != nil {
		return nil // what cannot be read shows below
	}
	defer found.Close()
	var text strings.Builder
	for found.Next() {
		var line string
		if found.Scan(&line) != nil {
			break
		}
		fmt.Fprintln(&text, line)
	}
	found.Close()
	for _, m := range regexp.MustCompile(`\bTree (\d+)\b`).FindAllStringSubmatch(text.String(), -1) {
		var name string
		err := conn.QueryRowContext(ctx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage = ?`, m[1]).Scan(&name)
		if err == nil {
			all = append(all, name)
		}
	}
	return all
}

// salvage copies the rows of a table from its begin and, where one cannot be read, those from its end. whole is false if there
// are others. The error is that of the database they go to.
func (t table) salvage(ctx context.Context, to, from *sql.Conn) (whole bool, err error) {
	if _, err := to.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	whole, err = t.copyRows(ctx, to, from, "")
	if err == nil && !whole {
		_, err = t.copyRows(ctx, to, from, " DESC")
	}
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	_, ended := to.ExecContext(context.WithoutCancel(ctx), end)
	return whole, errors.Join(err, ended)
}

func (t table) copyRows(ctx context.Context, to, from *sql.Conn, order string) (whole bool, err error) {
	columns, places := `"`+strings.Join(t.columns, `", "`)+`"`, strings.Repeat(", ?", len(t.columns))[2:]
	rows, err := from.QueryContext(ctx, `SELECT `+columns+` FROM "`+t.name+`" NOT INDEXED ORDER BY `+strings.Join(t.key, order+", ")+order)
	if err != nil {
		return false, ctx.Err()
	}
	defer rows.Close()
	insert, err := to.PrepareContext(ctx, `INSERT OR IGNORE INTO "`+t.name+`" (`+columns+`) VALUES (`+places+`)`)
	if err != nil {
		return false, err
	}
	defer insert.Close()
	values, into := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range values {
		into[i] = &values[i]
	}
	whole = true
	for rows.Next() && rows.Scan(into...) == nil {
		done, err := insert.ExecContext(ctx, values...)
		switch {
		case causeOf(err) != nil || ctx.Err() != nil:
			return false, err
		case err != nil: // a value that no row may have
			whole = false
			continue
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			whole = false
		}
	}
	return whole && rows.Err() == nil, ctx.Err()
}

// DropOrphans has no row name one that is not there: it forgets the name, or the row where that must have one.
func (db *DB) DropOrphans(ctx context.Context) error {
	return explain(db.writer.owned(ctx, func(t *Tx) error {
		for {
			var changed int64
			mends, err := ManyIn(t, Value[string], `SELECT CASE WHEN c."notnull" OR c.pk THEN 'DELETE FROM "' || l.name || '"'
					ELSE 'UPDATE "' || l.name || '" SET "' || k."from" || '" = NULL' END || ' WHERE "' || k."from" || '" IS NOT NULL
					AND "' || k."from" || '" NOT IN (SELECT "' || k."to" || '" FROM "' || k."table" || '")'
				FROM pragma_table_list l JOIN pragma_foreign_key_list(l.name) k JOIN pragma_table_info(l.name) c ON c.name = k."from"
				WHERE l.schema = 'main' AND l.type = 'table'`)
			if err != nil {
				return err
			}
			for _, statement := range mends {
				n, err := t.Exec(statement)
				if changed += n; err != nil {
					return err
				}
			}
			if changed == 0 {
				return nil
			}
		}
	}))
}
