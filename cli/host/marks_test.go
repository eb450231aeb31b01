package host_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
)

// Each step lists the output on disk at its end. A step that must keep all output is followed by a step that shows it:
// deleted output does not come back.
func TestOutputOfSettledTurnsIsForgotten(t *testing.T) {
	t.Parallel()
	o := host.Options{Dir: t.TempDir()}
	h := clitest.OpenHost(t, o)
	p := start(t, h, agent(t, `exec cat`))
	say := func(line string) {
		t.Helper()
		write(t, p, line+"\n")
		if got := readLine(t, p); got != line {
			t.Fatalf("it says %q", got)
		}
	}
	begin := func(turn cli.TurnID, output int64) {
		t.Helper()
		if err := p.Begin(t.Context(), cli.Mark{Turn: turn, Output: output}); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(want string) {
		t.Helper()
		eventually(t, "of the output is kept: "+want, func() bool { return printed(t, o.Dir) == want })
	}
	begin("1", 0)
	say("one")
	h.Settled("1") // it has not ended yet
	p.Ended(4)
	begin("2", 4)
	kept("")
	say("two")
	begin("3", 8)
	say("three")
	h.Settled("3") // the second turn needs both outputs
	p.Ended(14)
	say("unasked")
	kept("two\nthree\nunasked\n")
	h.Settled("2")
	kept("unasked\n")
	h.Settled("other")
	begin("4", 22)
	kept("")
	say("four")

	// The next ductor continues from the marks.
	h = next(t, h, o)
	run := onlyLeft(t, h)
	if run.OutputEnd != 27 {
		t.Fatalf("left is %+v", run)
	}
	p = attach(t, h, run.Run, 22, cli.Mark{Turn: "4", Output: 22})
	if got := readLine(t, p); got != "four" {
		t.Errorf("it says %q", got)
	}
	p.Ended(27)
	h.Settled("4")
	kept("")
	say("five")
	stop(t, p, 0)
}

// printed returns the output of all runs on disk.
func printed(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "out"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return err.Error() // it is being replaced
		}
		all.Write(bytes.TrimLeft(raw, "\x00")) // a hole
	}
	return all.String()
}
