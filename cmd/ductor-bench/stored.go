package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // to add turns to the database while ductor is not running
)

// storedTurns measures turns in a chat twice: with an almost empty database, and after a million turns were added to
// the database. ductor restarts in between. The first turn after the restart is measured separately.
func storedTurns(ctx context.Context, s *setup) ([]float64, error) {
	var word words
	before, err := s.warm(ctx, &word)
	if err != nil {
		return nil, err
	}
	if err := s.stop(ctx); err != nil {
		return nil, err
	}
	if err := s.fill(ctx); err != nil {
		return nil, err
	}
	if err := s.start(ctx, ""); err != nil {
		return nil, err
	}
	after, err := s.warm(ctx, &word)
	if err != nil {
		return nil, err
	}
	return []float64{before[1:].median(), after[1:].median(), ms(after[0])}, nil
}

// warm measures turns in one chat whose agent is already running. The first turn starts the agent and does not count.
func (s *setup) warm(ctx context.Context, word *words) (first samples, err error) {
	p := pacer{every: 3 * time.Second} // slow enough for the chat's rate limit
	for range s.sizes.short + 1 {
		if err := p.wait(ctx); err != nil {
			return nil, err
		}
		t, err := s.turn(ctx, s.chat(1), word.next())
		if err != nil {
			return nil, err
		}
		first = append(first, t.first)
	}
	return first, nil
}

// fill adds sizes.stored copies of the newest turn to the database.
func (s *setup) fill(ctx context.Context) (err error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "home", ".local", "state", "ductor", "ductor.db"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("find the database: %w: %q", errors.Join(err, errors.New("there must be one")), files)
	}
	db, err := sql.Open("sqlite3", files[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	columns, err := columnsOf(ctx, db, "turns")
	if err != nil {
		return err
	}
	values := strings.NewReplacer(`"seq"`, "NULL", `"id"`, "'copy' || n").Replace(columns)
	_, err = db.ExecContext(ctx, fmt.Sprintf(
		`WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM count WHERE n < %d)
		INSERT INTO turns (%s) SELECT %s FROM count, (SELECT * FROM turns ORDER BY seq DESC LIMIT 1)`, s.sizes.stored, columns, values))
	if err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	return nil
}

// columnsOf returns the names of a table's columns, quoted and separated by commas.
func columnsOf(ctx context.Context, db *sql.DB, table string) (string, error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", err
		}
		names = append(names, `"`+name+`"`)
	}
	return strings.Join(names, ", "), rows.Err()
}
