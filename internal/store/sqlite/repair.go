package sqlite

import (
	"context"
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// CopyRows copies all rows of the damaged database at path into db, which must be empty and have the same version. It
// never changes the database at path. If it could not read all rows, it returns false, and the caller must discard db.
// It returns an error only for a failure of db.
func (db *DB) CopyRows(ctx context.Context, path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 { // SQLite would delete the log of an empty file
		return false, nil
	}
	whole := false
	err := db.writer.withToken(ctx, func(t *Tx) error {
		from := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro"}
		conn := db.writer.conn
		if _, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = OFF; ATTACH ? AS old", from.String()); err != nil {
			return nil //nolint:nilerr // the file is not a database
		}
		defer conn.ExecContext(ctx, "DETACH old")
		copies, err := ManyIn(t, Value[string],
			`SELECT 'INSERT INTO main."' || l.name || '" (' || group_concat('"' || c.name || '"')
				|| ') SELECT ' || group_concat('"' || c.name || '"') || ' FROM old."' || l.name || '" NOT INDEXED'
			FROM pragma_table_list l JOIN pragma_table_info(l.name) c
			WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite_%' GROUP BY l.name`)
		if err != nil {
			return err
		}
		if whole = hasAllRows(t); !whole {
			return nil
		}
		for _, statement := range copies {
			_, err := conn.ExecContext(ctx, statement)
			if err = explain(err); errors.Is(err, ErrDiskFull) || errors.Is(err, ErrDisk) {
				return err
			}
			whole = whole && err == nil
		}
		// An integrity check does not notice that a row was overwritten. So search for rows of other tables that refer
		// to a row that no longer exists.
		dangling, err := ManyIn(t, Value[string], `SELECT "table" FROM pragma_foreign_key_check(NULL, 'main')`)
		if err != nil {
			return err
		}
		whole = whole && len(dangling) == 0
		return ctx.Err()
	})
	return whole, explain(err)
}

// Patterns for the lines that an integrity check prints. harmlessLine matches lines that report no damage of a table.
// indexLine matches lines that may report damage of an index only. Some of these lines name a page, which is the group
// of the pattern.
var (
	harmlessLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(ok|\*\*\* in database old \*\*\*|Freelist: .*|Page \d+: never used)?$`)
	})
	indexLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:Tree (\d+) .*|.* on page (\d+)|.* in index .*)$`)
	})
)

// hasAllRows reports whether all rows of the attached (damaged) database can be read. It returns false if the two
// databases have different versions, or if damage may be outside of indexes.
func hasAllRows(t *Tx) bool {
	is, err := OneIn(t, Value[int], "PRAGMA main.user_version")
	was, failed := OneIn(t, Value[int], "PRAGMA old.user_version")
	if err != nil || failed != nil || is != was {
		return false
	}
	found, err := ManyIn(t, Value[string], "PRAGMA old.quick_check(1000000)")
	indexes, failed := ManyIn(t, Value[string], "SELECT rootpage FROM old.sqlite_schema WHERE type = 'index'")
	if err != nil || failed != nil {
		return false
	}
	indexDamaged := false // set after damage in an index, to which later lines without a page belong
	for line := range strings.SplitSeq(strings.Join(found, "\n"), "\n") {
		if harmlessLine().MatchString(line) {
			continue
		}
		in := indexLine().FindStringSubmatch(line)
		switch page := strings.Join(in[min(1, len(in)):], ""); {
		case in == nil, page == "" && !indexDamaged, page != "" && !slices.Contains(indexes, page):
			return false
		}
		indexDamaged = true
	}
	return true
}
