package disk

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// crashes is a sequence of lives of a program that uses SQLite.
type crashes struct {
	Seed  uint64
	Lives []stretch
}

// stretch is one life of the program.
type stretch struct {
	Rows  []int // number of rows of each transaction
	Crash Crash
	At    int
	Fold  int // the transaction after which a checkpoint copies the log into the file
}

func drawCrashes(t *rapid.T) crashes {
	return crashes{
		Seed: rapid.Uint64().Draw(t, "seed"),
		Lives: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stretch {
			return stretch{
				Rows:  rapid.SliceOfN(rapid.IntRange(1, 20), 1, 8).Draw(t, "rows"),
				Crash: rapid.SampledFrom([]Crash{Kill, Power}).Draw(t, "crash"),
				At:    rapid.IntRange(1, 120).Draw(t, "at"),
				Fold:  rapid.IntRange(0, 8).Draw(t, "fold"),
			}
		}), 1, 3).Draw(t, "lives"),
	}
}

// run runs the lives. It returns an error if an acknowledged transaction is missing, a transaction is incomplete, or
// the database is damaged.
func (c crashes) run(dir string, lie bool) error {
	d, err := New(dir, c.Seed)
	if err != nil {
		return err
	}
	defer d.Close()
	acknowledged := 0
	for _, l := range append(c.Lives, stretch{Crash: Power}) {
		began, dead := d.Calls(), false
		d.OnCrash(func(Crash) { dead = true })
		d.SetFaults(func(c Call) Fault {
			if l.At > 0 && c.Number == began+l.At && c.Op != Read {
				return Fault{Crash: l.Crash}
			}
			return Fault{Lie: lie}
		})
		if err := l.run(dir, &acknowledged); err != nil && !dead {
			return err
		}
		d.SetFaults(nil)
		d.Crash(l.Crash)
		if err := d.Restart(); err != nil {
			return err
		}
	}
	return nil
}

func (l stretch) run(dir string, acknowledged *int) (err error) {
	db, err := open(dir)
	if db != nil {
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	if err != nil {
		return err
	}
	if err := check(db, acknowledged); err != nil {
		return err
	}
	// Another connection reads an old snapshot, so that a checkpoint cannot always truncate the log.
	reader, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer reader.Close()
	if _, err := reader.ExecContext(context.Background(), "BEGIN; SELECT * FROM a LIMIT 1"); err != nil {
		return err
	}
	for n, rows := range l.Rows {
		if err := transaction(db, *acknowledged+1, rows); err != nil {
			return err
		}
		*acknowledged++
		if n == l.Fold {
			if _, err := reader.ExecContext(context.Background(), "ROLLBACK"); err != nil {
				return err
			}
			if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
				return err
			}
		}
	}
	return nil
}

// transaction inserts rows. The content of each row starts with the number of the transaction and its number of rows.
func transaction(db *sql.DB, number, rows int) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	for range rows {
		if _, err := tx.Exec("INSERT INTO a (content) VALUES (?)", fmt.Sprintf("%d of %d %01000d", number, rows,
			0)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// check checks the database after a crash.
func check(db *sql.DB, acknowledged *int) error {
	var word string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&word); err != nil || word != "ok" {
		return fmt.Errorf("damaged: %s (%w)", word, err)
	}
	var transactions, torn int
	if err := db.QueryRow(`SELECT count(*), coalesce(sum(rows <> want), 0) FROM (
		SELECT count(*) rows, CAST(substr(content, instr(content, ' of ') + 4) AS INTEGER) want
		FROM a GROUP BY CAST(content AS INTEGER))`).Scan(&transactions, &torn); err != nil {
		return err
	}
	if torn > 0 {
		return fmt.Errorf("%d transactions are there in part", torn)
	}
	if transactions < *acknowledged || transactions > *acknowledged+1 {
		return fmt.Errorf("%d transactions, and %d were acknowledged", transactions, *acknowledged)
	}
	*acknowledged = transactions
	return nil
}

// SQLite loses no acknowledged transaction if a crash happens at any call, as long as the disk works correctly.
func TestLawSQLiteLosesNothingThatItAcknowledged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCrashes(rt)
		if err := c.run(t.TempDir(), false); err != nil {
			rt.Fatal(err)
		}
	})
}

func FuzzCrashes(f *testing.F) {
	var dir func() string
	check := rapid.MakeFuzz(func(rt *rapid.T) {
		c := drawCrashes(rt)
		if err := c.run(dir(), false); err != nil {
			rt.Fatal(err)
		}
	})
	f.Fuzz(func(t *testing.T, input []byte) {
		dir = t.TempDir
		check(t, input)
	})
}

// The checks above detect a disk that acknowledges a sync without writing.
func TestALostFlushIsFound(t *testing.T) {
	const most = 50
	draw := rapid.Custom(drawCrashes)
	for n := range most {
		c := draw.Example(n)
		c.Lives = append(c.Lives, stretch{Rows: []int{1, 2, 3}, Crash: Power})
		if err := c.run(t.TempDir(), true); err != nil {
			t.Logf("found with example %d: %v", n, err)
			return
		}
	}
	t.Errorf("not found in %d runs", most)
}
