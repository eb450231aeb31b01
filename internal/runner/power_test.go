package runner

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ductor/internal/proctree"
)

// After a power failure any file of a run may be missing, shortened or empty, because nothing is synced: no agent
// survives either. The next runner starts, and lists the runs that it can read.
func TestARunnerStartsAfterAPowerFailure(t *testing.T) {
	damages := map[string]func(path string) error{
		"gone":  os.Remove,
		"empty": func(path string) error { return os.Truncate(path, 0) },
		"cut": func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, info.Size()/2))
		},
		"zeros": func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.WriteFile(path, make([]byte, info.Size()), 0o600))
		},
		"of the last start of the machine": func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, bytes.ReplaceAll(text, []byte(proctree.BootID()),
				[]byte("another")), 0o600))
		},
	}
	c := open(t)
	var agents []*Run
	for range damages {
		for range 4 {
			agents = append(agents, start(t, c, sh(`echo hello; read line`)))
			readLine(t, agents[len(agents)-1])
		}
	}
	for _, r := range agents {
		r.Detach()
	}
	killRunner(t, c)
	i := 0
	for name, damage := range damages {
		for _, file := range []string{recordFile, logFile, outFile, errFile} {
			id := agents[i].ID()
			for _, p := range processesOfRun(t, id) { // the power failure ends them
				_ = p.Signal(9)
			}
			if err := damage(filepath.Join(c.dir, id, file)); err != nil {
				t.Errorf("%s %s: %v", file, name, err)
			}
			i++
		}
	}
	again := reopen(t, c.dir, Options{})
	runs, err := again.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Alive {
			t.Errorf("%+v goes on after the machine ended", r)
		}
	}
	if len(runs) == 0 {
		t.Error("of no run anything is left")
	}
}
