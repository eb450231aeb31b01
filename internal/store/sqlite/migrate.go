package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-sqlite3"
)

type step struct {
	name string
	sql  string
}

// steps returns the migrations in order. The name of each file starts with the number of the migration: 0001, 0002 and
// so on.
func (s Schema) steps() ([]step, error) {
	names, err := fs.Glob(s.Migrations, "*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	steps := make([]step, 0, len(names))
	for i, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s should be number %d", name, i+1)
		}
		text, err := fs.ReadFile(s.Migrations, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{name: path.Base(name), sql: string(text)})
	}
	return steps, nil
}

// migrate runs the missing migrations, each in its own transaction. The transaction first reads the database's version,
// and later increments it. So a migration does not run twice if two processes start at the same time.
func (s Schema) migrate(ctx context.Context, conn *sql.Conn, steps []step) error {
	for {
		done, err := s.migrateOne(ctx, conn, steps)
		if err != nil || done {
			return err
		}
	}
}

func (s Schema) migrateOne(ctx context.Context, conn *sql.Conn, steps []step) (done bool, err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	defer func() {
		if done || err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	version, err := pragma(ctx, conn, "user_version")
	if err != nil {
		return false, err
	}
	switch {
	case version > len(steps):
		return false, newerError(version, len(steps))
	case version == len(steps):
		return true, nil
	}
	next := steps[version]
	if _, err := conn.ExecContext(ctx, next.sql); err != nil {
		return false, fmt.Errorf("migration %s: %w", next.name, err)
	}
	mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", s.ApplicationID, version+1)
	if _, err := conn.ExecContext(ctx, mark); err != nil {
		return false, fmt.Errorf("migration %s: %w", next.name, err)
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return false, err
}

func newerError(version, known int) error {
	return fmt.Errorf("%w: it has version %d, and this program knows up to %d. Install the newer version again, "+
		"or put back the copy of the database from before it (its name ends in %s)",
		ErrNewer, version, known, backupSuffix)
}

// checkOwner returns ErrForeign if another program created the database file.
func (s Schema) checkOwner(ctx context.Context, conn *sql.Conn) error {
	id, err := pragma(ctx, conn, "application_id")
	if err != nil {
		return damagedError(err)
	}
	if id == s.ApplicationID {
		return nil
	}
	var tables int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return damagedError(err)
	}
	if id != 0 || tables > 0 {
		return fmt.Errorf("%w: name another file, or move this one away", ErrForeign)
	}
	return nil
}

// checkPages checks the whole file at the start, because a turn should not be the first to notice damage. It uses
// integrity_check and not quick_check, which does not compare indexes with their tables.
func checkPages(ctx context.Context, conn *sql.Conn) error {
	var word string
	if err := conn.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&word); err != nil {
		return damagedError(err)
	}
	if word != "ok" {
		return integrityError(word)
	}
	return nil
}

// integrityError returns the error for a finding of an integrity check: ErrDisk if the disk could not be read, and
// otherwise ErrCorrupt.
func integrityError(finding string) error {
	words := strings.Join(strings.Fields(finding), " ")
	if strings.Contains(words, fmt.Sprint("error code=", int(sqlite3.ErrIoErrRead))) {
		return fmt.Errorf("%w: %s", ErrDisk, words)
	}
	return fmt.Errorf("%w: %s. %s", ErrCorrupt, words, restoreAdvice)
}

// damagedError adds ErrCorrupt and advice to an error that indicates damage. An SQLITE_ERROR counts as damage, too,
// because the first query returns it if SQLite cannot read the schema.
func damagedError(err error) error {
	var e sqlite3.Error
	if causeOf(err) != ErrCorrupt && (!errors.As(err, &e) || e.Code != sqlite3.ErrError) {
		return err
	}
	return fmt.Errorf("%w: %w. %s", ErrCorrupt, err, restoreAdvice)
}

func pragma(ctx context.Context, conn *sql.Conn, name string) (int, error) {
	var n int
	err := conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&n)
	return n, err
}
