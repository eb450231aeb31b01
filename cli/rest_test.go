package cli

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// drained is a pipe with a drainReader at its end.
func drained(t *testing.T) (*drainReader, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d := newDrainReader(r)
	t.Cleanup(func() { w.Close(); d.end() })
	return d, w
}

func write(t *testing.T, w *os.File, text string) {
	t.Helper()
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, d *drainReader, want string) {
	t.Helper()
	buf := make([]byte, 100)
	n, err := d.Read(buf)
	if err != nil || string(buf[:n]) != want {
		t.Fatalf("read %q, %v; want %q", buf[:n], err, want)
	}
}

func TestARestLosesNothing(t *testing.T) {
	d, w := drained(t)
	before := openFiles(t)
	write(t, w, "before ")
	d.rest()
	write(t, w, "during")
	read(t, d, "before during")
	d.rest() // goes on
	write(t, w, "once more")
	read(t, d, "once more")
	if d.file != nil {
		t.Error("the rest ended although there was something to read")
	}
	go func() { // nothing is there: Read waits
		time.Sleep(20 * time.Millisecond)
		_, _ = w.WriteString("later")
	}()
	read(t, d, "later")
	if d.file == nil {
		t.Error("a Read that waits still rests")
	}
	for range 100 {
		d.rest()
		write(t, w, "x")
		read(t, d, "x")
	}
	d.rest()
	go func() {
		time.Sleep(20 * time.Millisecond)
		_ = w.Close()
	}()
	if n, err := d.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// A program that exits while its reader rests: all it wrote arrives, and a grandchild that holds the pipe
// is waited for as always.
func TestAProgramThatExitsDuringARest(t *testing.T) {
	d, w := drained(t)
	d.rest()
	write(t, w, strings.Repeat("last words ", 5))
	d.programExited()
	all, err := io.ReadAll(d)
	if err != nil || string(all) != strings.Repeat("last words ", 5) {
		t.Errorf("%q, %v", all, err)
	}
	select {
	case <-d.caught:
	default:
		t.Error("nobody is told that all was read")
	}
	d.rest() // of a pipe that is closed
	if n, err := d.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func TestARestOfAPipeThatIsClosed(t *testing.T) {
	d, _ := drained(t)
	d.end()
	d.rest()
	if n, err := d.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}
