package homes

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type file struct {
	name, text string
	when       int64 // in seconds
}

func archive(t testing.TB, files ...file) *bytes.Buffer {
	t.Helper()
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o640, Size: int64(len(f.text)),
			ModTime: time.Unix(f.when, 0)}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &raw
}

// run returns the answer of Main.
func run(t testing.TB, in io.Reader, args ...string) Answer {
	t.Helper()
	var out bytes.Buffer
	code := Main(args, in, &out)
	var a Answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil || (code == 0) != (a.Error == "") {
		t.Fatalf("code %d and %q: %v", code, out.String(), err)
	}
	return a
}

func content(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}

func TestAHome(t *testing.T) {
	all := filepath.Join(t.TempDir(), "all")
	make := func(files ...file) {
		t.Helper()
		if a := run(t, archive(t, files...), all, Make, "one"); a.Error != "" {
			t.Fatal(a.Error)
		}
	}
	make(file{"deep/key", "one", 10}, file{"name", "n", 10})
	make(file{"deep/key", "older", 9}, file{"name", "newer", 11})
	if got := content(t, all+"/one/deep/key") + content(t, all+"/one/name"); got != "onenewer" {
		t.Errorf("the files are %q", got)
	}
	info, err := os.Stat(all + "/one/deep/key")
	if err != nil || info.Mode() != 0o640 || info.ModTime().Unix() != 10 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, err := os.ReadDir(all + "/one"); err != nil || len(entries) != 2 {
		t.Errorf("it holds %v, %v", entries, err)
	}
	run(t, archive(t), all, Make, "two")
	homes := run(t, nil, all, List).Homes
	if len(homes) != 2 || homes[0].Name != "one" || homes[0].Bytes != 8 || homes[0].Used.IsZero() ||
		homes[1].Bytes != 0 {
		t.Errorf("listed are %+v", homes)
	}
	for range 2 {
		if a := run(t, nil, all, Forget, "one"); a.Error != "" {
			t.Error(a.Error)
		}
	}
	if homes = run(t, nil, all, List).Homes; len(homes) != 1 || homes[0].Name != "two" {
		t.Errorf("then listed are %+v", homes)
	}
}

func TestWhatIsRefused(t *testing.T) {
	all := t.TempDir()
	outside := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		in   io.Reader
	}{
		{"nothing", nil, nil},
		{"no order", []string{all}, nil},
		{"no name", []string{all, Make}, archive(t)},
		{"a place that is no name", []string{all, Forget, ".."}, nil},
		{"the directory itself", []string{all, Forget, "."}, nil},
		{"a path", []string{all, Make, "a/b"}, archive(t)},
		{"an unknown verb", []string{all, "sing", "one"}, nil},
		{"a file outside", []string{all, Make, "one"}, archive(t, file{"../x", "x", 1})},
		{"a file at a place of its own", []string{all, Make, "one"}, archive(t, file{outside + "/x", "x", 1})},
		{"a broken archive", []string{all, Make, "one"},
			strings.NewReader("no archive at all, and long enough to be read" + strings.Repeat("x", 600))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a := run(t, c.in, c.args...); a.Error == "" {
				t.Error("it was done")
			}
		})
	}
	if err := os.Symlink(outside, filepath.Join(all, "one", "link")); err != nil {
		t.Fatal(err)
	}
	if a := run(t, archive(t, file{"link/x", "x", 1}), all, Make, "one"); a.Error == "" {
		t.Error("a link led out")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside there are %v, %v", entries, err)
	}
}

// Whatever an archive contains, files beside the home do not change.
func FuzzArchive(f *testing.F) {
	f.Add(archive(f, file{"a/b", "text", 5}, file{"../c", "x", 6}).Bytes())
	f.Add(archive(f, file{"a", "text", 5}, file{"a/b", "x", 6}, file{".", "", 1}).Bytes())
	f.Add([]byte("nothing"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		all := filepath.Join(t.TempDir(), "all")
		if err := os.MkdirAll(filepath.Join(all, "two"), 0o700); err != nil {
			t.Fatal(err)
		}
		run(t, bytes.NewReader(raw), all, Make, "one")
		err := filepath.WalkDir(filepath.Dir(all), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasPrefix(path, filepath.Join(all, "one")+"/") {
				t.Errorf("%s was written", path)
			}
			return nil // unreadable because of the archive; inside of the home
		})
		if err != nil {
			t.Error(err)
		}
		if homes := run(t, nil, all, List).Homes; len(homes) != 2 {
			t.Errorf("the homes are %+v", homes)
		}
	})
}
