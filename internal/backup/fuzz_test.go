package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Verify accepts an archive, or rejects it as damaged or foreign; Restore writes nothing outside of the state
// directory.
func FuzzArchive(f *testing.F) {
	entries := func(named ...string) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for i := 0; i < len(named); i += 2 {
			if err := w.WriteHeader(&tar.Header{Name: named[i], Size: int64(len(named[i+1])), Mode: 0o600,
				Typeflag: tar.TypeReg}); err != nil {
				f.Fatal(err)
			}
			if _, err := io.WriteString(w, named[i+1]); err != nil {
				f.Fatal(err)
			}
		}
		return out.Bytes()
	}
	f.Add(entries("state/a", "text", manifestName, `{"format":1}`))
	f.Add(entries("../outside", "text", manifestName, `{"format":1,"entries":[{"name":"../outside"}]}`))
	f.Add(entries(otherPrefix+"config", "text", manifestName, `{"format":99}`))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		path, state := filepath.Join(dir, "archive"), filepath.Join(dir, "state")
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, err := w.Write(archive)
		if err := errors.Join(err, w.Close(), os.WriteFile(path, zipped.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Verify(path); err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
				t.Fatal(err)
			}
			return // Restore would flush to the disk and return the same
		}
		_, _, _ = Restore(t.Context(), path, Target{State: state}) // may return an error
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			if e.Name() != "archive" && e.Name() != "state" {
				t.Fatalf("%s is outside", e.Name())
			}
		}
	})
}
