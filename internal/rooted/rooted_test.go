package rooted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tree creates a directory with every kind of file.
func tree(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "project")
	for _, d := range []string{"out", ".git", "out/.cache", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"project/out/report.txt": "42", "project/none.txt": "", "project/.env": "KEY=1", "project/.git/config": "x",
		"project/large": "0123456789", "outside.txt": "secret",
	} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Link(filepath.Join(top, "outside.txt"), filepath.Join(dir, "hard.txt")))
	must(os.Symlink("out", filepath.Join(dir, "linked")))
	must(os.Symlink("out/report.txt", filepath.Join(dir, "link.txt")))
	must(os.Symlink("../outside.txt", filepath.Join(dir, "escape.txt")))
	must(os.Symlink("/etc", filepath.Join(dir, "etc")))
	must(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(err)
	t.Cleanup(func() { _ = l.Close() })
	return dir
}

func refusalOf(err error) Refusal {
	var e *Error
	if errors.As(err, &e) {
		return e.Refusal
	}
	return ""
}

func TestRead(t *testing.T) {
	dir := tree(t)
	for below, want := range map[string]Refusal{
		"out/report.txt": "", "out/../out/report.txt": "", "none.txt": Empty, "large": TooLarge, "out": Directory,
		"missing":   NotThere,
		"missing/x": NotThere, "large/x": NoFolder, "out/.cache/x": NotThere,
		"link.txt":          Link,
		"linked/report.txt": Link, "escape.txt": Link, "hard.txt": HardLink, "etc/hostname": Link, "pipe": Special,
		"socket": Special, "../outside.txt": NotThere,
		"/etc/hostname": NotThere, "": Directory,
	} {
		content, err := Read(dir, below, 9)
		if refusalOf(err) != want || want == "" && string(content) != "42" {
			t.Errorf("%q: %q, %v; want %q", below, content, err, want)
		}
	}
	if _, err := Read(dir, "large", 9); err.(*Error).Size != 10 {
		t.Errorf("the size of a large file is %d", err.(*Error).Size)
	}
	if _, err := Read("/dev", "null", 9); refusalOf(err) != Special {
		t.Errorf("a device: %v", err)
	}
	if content, err := Read(dir, "large", 10); err != nil || string(content) != "0123456789" {
		t.Errorf("a file of the size that is allowed: %q, %v", content, err)
	}
}

// If a file is replaced during Read, Read rejects it or returns all of it. It never reads another file of the machine
// and never blocks on a pipe.
func TestReadWhileAnotherReplaces(t *testing.T) {
	dir := tree(t)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			at := filepath.Join(dir, "swap")
			_ = os.Remove(at)
			switch i % 3 {
			case 0:
				_ = os.WriteFile(at, []byte("42"), 0o600)
			case 1:
				_ = os.Symlink("../outside.txt", at)
			case 2:
				_ = syscall.Mkfifo(at, 0o600)
			}
		}
	}()
	until := time.Now().Add(200 * time.Millisecond)
	for time.Now().Before(until) {
		if content, err := Read(dir, "swap", 100); err == nil && string(content) != "42" {
			t.Errorf("read %q", content)
		}
	}
	close(stop)
	<-done
}

// A file that is too large is not opened: to close it would give up the locks that this process has on it.
func TestAFileThatIsTooLargeKeepsItsLocks(t *testing.T) {
	dir := tree(t)
	f, err := os.OpenFile(filepath.Join(dir, "large"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var stat syscall.Stat_t
	err = errors.Join(syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}),
		syscall.Fstat(int(f.Fd()), &stat))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, "large", 0); refusalOf(err) != TooLarge {
		t.Errorf("Read says %v", err)
	}
	if !isLocked(t, stat.Ino) {
		t.Error("the lock is gone")
	}
}

// isLocked reports whether a process has a POSIX lock on a file. The kernel lists the locks in several pieces. An entry
// can be missing while other processes lock files, so isLocked reads the list again. A lost lock never comes back.
func isLocked(t *testing.T, inode uint64) bool {
	t.Helper()
	for range 20 {
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(locks), fmt.Sprintf(":%d ", inode)) {
			return true
		}
	}
	return false
}

func TestCheckVisible(t *testing.T) {
	for path, want := range map[string]Refusal{
		".": "", "": "", "out/report.txt": "", "./out": "", "a.b/c.": "", "out/../a": "", ".env": Hidden,
		".git/config": Hidden, "out/.cache/x": Hidden, "out/../.env": Hidden, "./.env": Hidden,
		"...": Hidden, "../x": Hidden,
	} {
		if err := CheckVisible(path); refusalOf(err) != want {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
}

func TestList(t *testing.T) {
	dir := tree(t)
	all, err := List(dir, ".")
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); err != nil || got != "empty out hard.txt large none.txt" {
		t.Errorf("%s, %v", got, err)
	}
	for below, want := range map[string]Refusal{"out": "", "empty": "", "linked": Link, "etc": Link, ".git": "",
		"missing": NotThere, "large": NoFolder, "..": NotThere} {
		if _, err := List(dir, below); refusalOf(err) != want {
			t.Errorf("%s: %v, want %q", below, err, want)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := tree(t)
	for below, want := range map[string]Refusal{
		"out/new.txt": "", "new.txt": "", "large": Exists, "link.txt": Exists, "escape.txt": Exists, "out": Directory,
		"linked/new.txt": Link, "etc/new.txt": Link, "missing/new.txt": NotThere, "../new.txt": NotThere,
		"pipe": Exists,
	} {
		if err := Write(dir, below, []byte("new")); refusalOf(err) != want {
			t.Errorf("%s: %v, want %q", below, err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out", "new.txt")); err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*part*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Main in a container returns the same as the functions here.
func TestMainAnswers(t *testing.T) {
	dir := tree(t)
	askFor := func(most int64, in string, args ...string) (Answer, string) {
		t.Helper()
		var out bytes.Buffer
		Main(args, strings.NewReader(in), &out)
		a, content, err := ReadAnswer(&out, most)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return a, string(content)
	}
	ask := func(in string, args ...string) (Answer, string) { t.Helper(); return askFor(100, in, args...) }
	if a, content := ask("", GetAction, dir, "out/report.txt", "100"); a.Error != nil || content != "42" {
		t.Errorf("get: %+v %q", a, content)
	}
	if a, _ := ask("", GetAction, dir, "large", "9"); a.Error == nil || a.Error.Refusal != TooLarge ||
		a.Error.Size != 10 {
		t.Errorf("a large file: %+v", a)
	}
	if a, _ := ask("", ListAction, dir, "out"); a.Error != nil || len(a.Entries) != 1 ||
		a.Entries[0] != (Entry{Name: "report.txt", Size: 2}) {
		t.Errorf("list: %+v", a)
	}
	if a, _ := ask("newer", PutAction, dir, "put.txt", "5"); a.Error != nil {
		t.Errorf("put: %+v", a.Error)
	}
	if a, _ := ask("new", PutAction, dir, "torn.txt", "5"); a.Error == nil || a.Error.Refusal != Failed {
		t.Errorf("a file that did not come whole: %+v", a)
	}
	if _, err := os.Stat(filepath.Join(dir, "torn.txt")); err == nil {
		t.Error("a torn file was made")
	}
	paths, err := json.Marshal([]string{filepath.Join(dir, "linked/new"), filepath.Join(dir, "escape.txt"),
		filepath.Join(dir, "out"), filepath.Join(dir, "turns")})
	if err != nil || os.Symlink("turns", filepath.Join(dir, "turns")) != nil {
		t.Fatal("no list of paths")
	}
	want := fmt.Sprintf(`["%[1]s/out/new","%[2]s/outside.txt","%[1]s/out","%[1]s/turns"]`, dir, filepath.Dir(dir))
	if a, content := askFor(1000, string(paths), RealAction, "/", ".", strconv.Itoa(len(paths))); a.Error != nil ||
		content != want {
		t.Errorf("real: %+v %s, want %s", a.Error, content, want)
	}
	for _, args := range [][]string{{}, {"take", dir, "x", "1"}, {GetAction, dir, "x", "many"},
		{RealAction, "/", ".", "1"}} {
		if a, _ := ask("", args...); a.Error == nil {
			t.Errorf("%q was done", args)
		}
	}
	if _, _, err := ReadAnswer(strings.NewReader("usage: ductor-runner\n"), 100); err == nil {
		t.Error("anything is taken for an answer")
	}
}
