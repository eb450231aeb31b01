package files_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli/stored/files"
)

func write(t *testing.T, path, text string, used time.Time) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, used, used); err != nil {
		t.Fatal(err)
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func find(t *testing.T, home string, q files.Query) (names []string, all []files.File) {
	t.Helper()
	all, err := files.Find(t.Context(), []string{"HOME=/nowhere", "HOME=" + home}, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		names = append(names, f.Name)
	}
	return names, all
}

// TestFind tests that Find returns the newest matching files, without links, pipes, and files outside the home.
func TestFind(t *testing.T) {
	home := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{home, ".agent"}, parts...)...) }
	write(t, at("chats", "a", "s1.jsonl"), "mine\nold", noon)
	write(t, at("chats", "b", "s2.jsonl"), "mine\nnew", noon.Add(time.Hour))
	write(t, at("chats", "b", "s3.jsonl"), "theirs", noon.Add(2*time.Hour))
	write(t, at("chats", "b", "s4.txt"), "mine", noon.Add(3*time.Hour))
	write(t, at("other", "b", "s5.jsonl"), "mine", noon)
	write(t, filepath.Join(home, "secret", "s6.jsonl"), "mine", noon)
	if err := os.MkdirAll(at("chats", "b", "dir.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("chats", "b", "pipe.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		at("chats", "b", "link.jsonl"): filepath.Join(home, "secret", "s6.jsonl"),
		at("chats", "c"):               filepath.Join(home, "secret"), at("away"): filepath.Join(home, "secret"),
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	q := files.Query{Homes: []string{"AGENT_HOME", "HOME/.agent"}, Globs: []string{"chats/*/*.jsonl", "away/*.jsonl"},
		Has: "mine", Most: 10}
	names, _ := find(t, home, q)
	if got := strings.Join(names, " "); got != "chats/b/s2.jsonl chats/a/s1.jsonl" {
		t.Errorf("found %s", got)
	}
	q.Most = 1
	if names, _ = find(t, home, q); len(names) != 1 || names[0] != "chats/b/s2.jsonl" {
		t.Errorf("the newest is %v", names)
	}
	if names, _ = find(t, filepath.Join(home, "nothing"), q); names != nil {
		t.Errorf("a home that is not there has %v", names)
	}

	var out bytes.Buffer
	t.Setenv("HOME", home)
	query, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if code := files.Main([]string{string(query)}, &out); code != 0 ||
		!strings.Contains(out.String(), `"Name":"chats/b/s2.jsonl"`) {
		t.Errorf("the program answers %d %s", code, &out)
	}
	out.Reset()
	if code := files.Main(nil, &out); code != 1 || !strings.Contains(out.String(), `"error":"want one argument: a query"`) {
		t.Errorf("without a query the program answers %d %s", code, &out)
	}
}

// TestFindReadsLittle tests that Find reads only the ends of the newest of ten thousand files.
func TestFindReadsLittle(t *testing.T) {
	home := t.TempDir()
	for i := range 10_000 {
		path := filepath.Join(home, "s", fmt.Sprintf("%05d", i))
		write(t, path, fmt.Sprintf("begins %d\n", i), noon.Add(time.Duration(i)*time.Second))
		if i%1000 == 999 {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = f.WriteAt([]byte("ends"), 100<<20); err != nil {
				t.Fatal(err)
			}
			if err = f.Close(); err != nil {
				t.Fatal(err)
			}
			at := noon.Add(time.Duration(i) * time.Second)
			if err = os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	names, all := find(t, home, files.Query{Homes: []string{"HOME"}, Globs: []string{"s/*"}, Most: 15})
	if len(names) != 15 || names[0] != "s/09999" || names[14] != "s/09985" {
		t.Fatalf("found %v", names)
	}
	if !bytes.HasPrefix(all[0].Head, []byte("begins 9999\n")) || !bytes.HasSuffix(all[0].Tail, []byte("ends")) ||
		string(all[1].Head) != "begins 9998\n" || len(all[1].Tail) != 0 {
		t.Errorf("%.20q … %q, %q %q", all[0].Head, all[0].Tail[max(0, len(all[0].Tail)-9):], all[1].Head, all[1].Tail)
	}
	for _, f := range all {
		if n := len(f.Head) + len(f.Tail); n > 200<<10 {
			t.Errorf("%s: %d bytes are read", f.Name, n)
		}
	}
}
