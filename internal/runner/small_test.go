package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// smallProgram returns the path of a copy of the test binary, and options to start runners with it.
func smallProgram(t *testing.T) (string, Options) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small")
	if out, err := exec.Command("cp", runnerCommand(t)[0], path).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	o, err := Small(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return path, o
}

// A runner of the small program starts even if the file is deleted.
func TestTheSmallProgramIsTheRunner(t *testing.T) {
	path, o := smallProgram(t)
	if o.SmallProgram() != path {
		t.Errorf("its path is %s", o.SmallProgram())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c := reopen(t, t.TempDir(), o)
	r := start(t, c, sh("echo one"))
	if got := readRest(t, r); got != "one\n" {
		t.Errorf("it says %q", got)
	}
	id, ok := runnerOf(c)
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", id.PID))
	if !ok || err != nil || program != path+" (deleted)" {
		t.Errorf("the runner is %s, %v", program, err)
	}
}

// A runner of ductor itself upgrades to the small program while its runs continue, and vice versa.
func TestUpgradeToAndFromTheSmallProgram(t *testing.T) {
	path, o := smallProgram(t)
	o.Upgrade = true
	dir := t.TempDir()
	large := Options{Command: runnerCommand(t), Upgrade: true}
	r := start(t, reopen(t, dir, large), sh("read line; echo got $line"))
	before, _ := runnerOf(r.c)
	becomes := func(o Options, want string) {
		// a runner that starts a run is busy; the next start of ductor tries again
		eventually(t, "it is "+want, func() bool {
			c := reopen(t, dir, o)
			if err := c.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			after, ok := runnerOf(c)
			if ok && after != before {
				t.Fatalf("%v became %v", before, after)
			}
			program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", after.PID))
			return ok && err == nil && program == want
		})
	}
	becomes(o, path)
	becomes(large, runnerCommand(t)[0])
	write(t, r, "it\n")
	if got := readRest(t, r); got != "got it\n" {
		t.Errorf("it says %q", got)
	}
}

func TestSmallRejectsOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho 999\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var version *VersionError
	if _, err := Small(t.Context(), other); !errors.As(err, &version) || version.Runner != 999 {
		t.Errorf("one of another version: %v", err)
	}
	if _, err := Small(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	if err := os.WriteFile(other, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Small(t.Context(), other); err == nil {
		t.Error("one that fails is taken")
	}
}
