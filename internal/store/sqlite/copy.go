package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// Copy writes a snapshot of the database at path to the new file target (mode 0600), and checks the copy like Check.
// Other processes can use the database meanwhile. The error matches fs.ErrExist if target exists.
func Copy(ctx context.Context, path, target string, schema Schema) error {
	info, err := os.Stat(path)
	if err == nil {
		err = checkHeader(path, info.Size())
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", path, err)
	}
	// Do not let SQLite create the file, because other users could then read it.
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("copy %s: %w", path, err)
	}
	if err = f.Close(); err == nil {
		err = vacuumInto(ctx, path, target)
	}
	if err == nil {
		_, err = Check(ctx, target, schema)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", path, errors.Join(explain(err), os.Remove(target)))
	}
	return nil
}

func vacuumInto(ctx context.Context, path, target string) error {
	pool, err := openPool(path, Options{}.withDefaults(), url.Values{"mode": {string(readOnly)}}, 1)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, "VACUUM INTO ?", target)
	return errors.Join(err, pool.Close())
}

// Check checks the whole database at path, and returns the version of its schema. No process may use the database
// meanwhile. Check changes nothing. The error matches ErrCorrupt, ErrForeign or ErrNewer. An older version is no error.
func Check(ctx context.Context, path string, schema Schema) (version int, err error) {
	steps, err := schema.steps()
	if err != nil {
		return 0, err
	}
	pool, err := openPool(path, Options{}.withDefaults(), url.Values{"mode": {string(readOnly)}, "_query_only": {"1"}},
		1)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(explain(err), pool.Close()) }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := schema.checkOwner(ctx, conn); err != nil {
		return 0, err
	}
	if version, err = pragma(ctx, conn, "user_version"); err != nil {
		return 0, err
	}
	if version > len(steps) {
		return version, newerError(version, len(steps))
	}
	return version, checkPages(ctx, conn)
}
