package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/store"
	"ductor/internal/store/sqlite"
)

const database = "ductor.db"

// stateDir creates a state: a database, a user's file, a link, and files that no backup contains.
func stateDir(t *testing.T) (dir string, db *store.DB) {
	t.Helper()
	dir = t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, database), store.Options{})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	for _, name := range []string{"uploads/1/note.txt", "keys/codex.OPENAI_API_KEY", "runner/run", "homes/s/tool"} {
		path := filepath.Join(dir, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("in "+name), 0o700)))
	}
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "uploads/link")))
	return dir, db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeArchive writes an archive of a state that is in use.
func writeArchive(t *testing.T, dir string, dirs ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.tar.gz")
	_, err := Write(t.Context(), path, Contents{State: dir, Database: database, Dirs: dirs, Version: "test"})
	must(t, err)
	return path
}

func restoreTo(t *testing.T, archive, state string, existing Existing) (aside string, err error) {
	t.Helper()
	_, aside, err = Restore(t.Context(), archive, Target{State: state, Database: database, Existing: existing})
	return aside, err
}

// tree lists the files below dir, except databases and their logs.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, database) {
			all = append(all, path)
		}
		return err
	}))
	return strings.Join(all, " ")
}

func TestContentsOfAnArchive(t *testing.T) {
	dir, db := stateDir(t)
	must(t, db.SaveCard(t.Context(), "turn", []byte("card")))
	archive, to := writeArchive(t, dir, "uploads", "outgoing"), filepath.Join(t.TempDir(), "state")
	info, err := os.Stat(archive)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the archive has mode %v", info.Mode())
	}
	_, err = restoreTo(t, archive, to, Refuse)
	must(t, err)
	if got := tree(t, to); got != "uploads/1/note.txt" {
		t.Errorf("restored: %s", got)
	}
	whole := writeArchive(t, dir, "uploads", "keys", "homes")
	aside, err := restoreTo(t, whole, to, Aside)
	must(t, err)
	if got := strings.ReplaceAll(tree(t, to), filepath.Base(aside),
		"aside"); got != "aside/uploads/1/note.txt homes/s/tool keys/codex.OPENAI_API_KEY uploads/1/note.txt" {
		t.Errorf("restored with more: %s", got)
	}
	again, err := store.Open(t.Context(), filepath.Join(to, database), store.Options{})
	must(t, err)
	defer again.Close()
	if card, err := again.LoadCard(t.Context(), "turn"); err != nil || string(card) != "card" {
		t.Errorf("the restored database has the card %q: %v", card, err)
	}
}

// A rejected restore changes nothing and returns the reason.
func TestAnArchiveOfARelativePath(t *testing.T) {
	dir, _ := stateDir(t)
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("backups", 0o700))
	archive := filepath.Join("backups", "a.tar.gz")
	_, err := Write(t.Context(), archive, Contents{State: dir, Database: database})
	must(t, err)
	_, err = restoreTo(t, archive, "state", Refuse)
	must(t, err)
}

func TestRejectedRestores(t *testing.T) {
	dir, _ := stateDir(t)
	good := writeArchive(t, dir, "uploads")
	for name, c := range map[string]struct {
		spoil func(t *testing.T, archive string) string
		want  error
	}{
		"cut off":             {truncate, ErrDamaged},
		"a byte is different": {corruptChecksum, ErrDamaged},
		"no archive":          {func(t *testing.T, _ string) string { return write(t, []byte("text")) }, ErrDamaged},
		"a file is different": {rewrite(func(name string, text []byte) (string, []byte) {
			return name,
				change(name, "note.txt", text)
		}), ErrDamaged},
		"a file is not there": {rewrite(func(name string,
			text []byte) (string, []byte) {
			return dropFile(name, "note.txt"), text
		}), ErrDamaged},
		"a name that leads out": {rewrite(func(name string, text []byte) (string, []byte) {
			return strings.Replace(name, "uploads/1", "../../out", 1), text
		}), ErrDamaged},
		"a name that leads into the state": {rewrite(func(name string, text []byte) (string, []byte) {
			return strings.Replace(name, "uploads/1", "../early", 1), text
		}), ErrDamaged},
		"a newer archive": {rewrite(func(name string, text []byte) (string, []byte) {
			return name, bytes.Replace(text, []byte(`"format": 1`), []byte(`"format": 2`), 1)
		}), ErrForeign},
		"a newer database": {newerArchive, sqlite.ErrNewer},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "state")
			archive := c.spoil(t, good)
			if _, err := restoreTo(t, archive, to, Refuse); !errors.Is(err, c.want) {
				t.Errorf("it says %v, want %v", err, c.want)
			}
			if left, err := os.ReadDir(to); err != nil || len(left) != 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
	before := tree(t, dir)
	if _, err := restoreTo(t, good, dir, Refuse); !errors.Is(err, ErrInUse) {
		t.Errorf("over other state it says %v", err)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("over other state it changed %s to %s", before, after)
	}
}

// Write rejects a damaged database and does not touch an existing archive.
func TestRejectedBackups(t *testing.T) {
	dir, db := stateDir(t)
	path := writeArchive(t, dir)
	before, err := os.ReadFile(path)
	must(t, err)
	if _, err := Write(t.Context(), path, Contents{State: dir, Database: database}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an archive it says %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the archive is another: %v", err)
	}
	must(t, db.Close())
	must(t, os.WriteFile(filepath.Join(dir, database), []byte("SQLite format 3\x00 and nonsense"), 0o600))
	target := filepath.Join(t.TempDir(), "a")
	if _, err := Write(t.Context(), target,
		Contents{State: dir, Database: database}); !errors.Is(err, sqlite.ErrCorrupt) {
		t.Errorf("of a damaged database it says %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(target)); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

func write(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spoiled")
	must(t, os.WriteFile(path, text, 0o600))
	return path
}

func truncate(t *testing.T, archive string) string {
	t.Helper()
	text, err := os.ReadFile(archive)
	must(t, err)
	return write(t, text[:len(text)*2/3])
}

func corruptChecksum(t *testing.T, archive string) string {
	t.Helper()
	text, err := os.ReadFile(archive)
	must(t, err)
	text[len(text)-6] ^= 1 // in the gzip checksum
	return write(t, text)
}

func change(name, of string, text []byte) []byte {
	if strings.HasSuffix(name, of) {
		text[0] ^= 1
	}
	return text
}

func dropFile(name, of string) string {
	if strings.HasSuffix(name, of) {
		return ""
	}
	return name
}

// rewrite passes each file of an archive through f; an empty name drops the file.
func rewrite(f func(name string, text []byte) (string, []byte)) func(*testing.T, string) string {
	return func(t *testing.T, archive string) string {
		t.Helper()
		file, err := os.Open(archive)
		must(t, err)
		defer file.Close()
		zip, err := gzip.NewReader(file)
		must(t, err)
		from, out := tar.NewReader(zip), bytes.Buffer{}
		packed := gzip.NewWriter(&out)
		to := tar.NewWriter(packed)
		for {
			h, err := from.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			text, err := io.ReadAll(from)
			must(t, err)
			if h.Name, text = f(h.Name, text); h.Name != "" {
				h.Size = int64(len(text))
				must(t, to.WriteHeader(h))
				_, err = to.Write(text)
				must(t, err)
			}
		}
		must(t, errors.Join(to.Close(), packed.Close()))
		return write(t, out.Bytes())
	}
}

// newerArchive returns a valid archive with the database of a newer version.
func newerArchive(t *testing.T, archive string) string {
	t.Helper()
	var sum [sha256.Size]byte
	var size int64
	return rewrite(func(name string, text []byte) (string, []byte) {
		switch {
		case strings.HasSuffix(name, database):
			path := write(t, text)
			db, err := sql.Open("sqlite3", path)
			must(t, err)
			_, err = db.Exec("PRAGMA user_version = 9999")
			must(t, errors.Join(err, db.Close()))
			text, err = os.ReadFile(path)
			must(t, err)
			sum, size = sha256.Sum256(text), int64(len(text))
		case name == manifestName:
			var m Manifest
			must(t, json.Unmarshal(text, &m))
			for i := range m.Entries {
				if strings.HasSuffix(m.Entries[i].Name, database) {
					m.Entries[i].SHA256, m.Entries[i].Size = hex.EncodeToString(sum[:]), size
				}
			}
			var err error
			text, err = json.Marshal(m)
			must(t, err)
		}
		return name, text
	})(t, archive)
}

// Without a database, Write returns ErrNothing and creates no archive.
func TestABackupBeforeTheFirstStart(t *testing.T) {
	for _, state := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		target := filepath.Join(t.TempDir(), "archive")
		_, err := Write(t.Context(), target, Contents{State: state, Database: database})
		if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), filepath.Join(state, database)) {
			t.Errorf("it fails with %v", err)
		}
		if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is an archive: %v", err)
		}
	}
}
