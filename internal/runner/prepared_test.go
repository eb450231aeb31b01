package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// awaitPrepared waits until the directory of the next run exists, and returns its journal.
func awaitPrepared(t *testing.T, c *Client) (journal os.FileInfo) {
	t.Helper()
	eventually(t, "the next run is prepared", func() (ok bool) {
		if _, err := os.Stat(filepath.Join(c.dir, preparedDir, recordFile)); err != nil { // it is created last
			return false
		}
		info, err := os.Stat(filepath.Join(c.dir, preparedDir, outFile))
		journal = info
		return err == nil
	})
	return journal
}

func journalOf(t *testing.T, r *Run) os.FileInfo {
	t.Helper()
	info, err := os.Stat(filepath.Join(r.c.dir, r.ID(), outFile))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestStartUsesPreparedFiles(t *testing.T) {
	c := open(t)
	start(t, c, sh(`cat`))
	for range 3 {
		journal := awaitPrepared(t, c)
		if r := start(t, c, sh(`cat`)); !os.SameFile(journal, journalOf(t, r)) {
			t.Error("the journal of a run is not the one that was prepared")
		}
	}
}

func TestPreparedRunKeepsExistingRuns(t *testing.T) {
	c := open(t)
	first := start(t, c, sh(`echo one; cat`))
	journal := awaitPrepared(t, c)
	spec := sh(`cat`)
	spec.ID = first.ID()
	if _, err := c.Start(t.Context(), spec); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if got := readLine(t, first); got != "one" {
		t.Errorf("%q", got)
	}
	if r := start(t, c, sh(`cat`)); !os.SameFile(journal, journalOf(t, r)) {
		t.Error("what was prepared is not used after a start that failed")
	}
}

func TestDeletedPreparedRunIsCreatedAgain(t *testing.T) {
	c := open(t)
	start(t, c, sh(`cat`))
	for _, gone := range []string{"", logFile, outFile, errFile} {
		awaitPrepared(t, c)
		if err := os.RemoveAll(filepath.Join(c.dir, preparedDir, gone)); err != nil {
			t.Fatal(err)
		}
		if got := readLine(t, start(t, c, sh(`echo one; cat`))); got != "one" {
			t.Errorf("without %q: %q", gone, got)
		}
	}
}

// A runner does not use files that a dead runner prepared, because it does not know their reserved space.
func TestAPreparedRunOfADeadRunner(t *testing.T) {
	c := open(t)
	r := start(t, c, sh(`cat`))
	awaitPrepared(t, c)
	old := filepath.Join(c.dir, preparedDir, "old") // exists before the client starts the next runner
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	killRunner(t, c)
	write(t, r, "one\n")
	if got := readLine(t, r); got != "one" {
		t.Errorf("%q", got)
	}
	eventually(t, "it is made anew", func() bool {
		_, err := os.Stat(old)
		return errors.Is(err, fs.ErrNotExist)
	})
	awaitPrepared(t, c)
}

// TestNothingIsPreparedWithoutAClient: a user may delete the directory as soon as no client uses it.
func TestNothingIsPreparedWithoutAClient(t *testing.T) {
	s := &server{dir: directory{path: t.TempDir()}, clients: clients{conns: map[*conn]bool{}}}
	isThere := func() bool {
		_, err := os.Stat(filepath.Join(s.dir.path, preparedDir))
		return err == nil
	}
	s.prepare(time.Hour)
	if isThere() {
		t.Error("a run was prepared that no client can start")
	}
	s.clients.add(&conn{})
	s.prepare(time.Hour)
	if !isThere() {
		t.Error("no run was prepared for a client")
	}
	s.prepared.remove(s.dir.path)
}
