package supervisor

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
)

// A bigOutput, or less under the race detector, goes through with an owner that reads, and past one that is not there; neither disk nor memory
// grow with it.
func TestGigabyte(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		owned  bool
	}{
		"in lines, to an owner":     {`yes 'a line of output, of which there are many' | head -c %d`, true},
		"in one line, to an owner":  {`head -c %d /dev/zero`, true},
		"in one line, to no reader": {`head -c %d /dev/zero; echo; echo the end`, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := openRoot(t, Options{})
			spec := sh(`read x; ` + fmt.Sprintf(tc.script, bigOutput))
			spec.Limits.MaxSpool = 4 << 20
			run := start(t, root, spec)
			if err := run.Stdin().Close(); err != nil {
				t.Fatal(err)
			}
			if tc.owned {
				n, err := io.Copy(io.Discard, run.Stdout())
				if err != nil || n != bigOutput || run.LostBytes() != 0 {
					t.Errorf("%d bytes, %d lost, %v", n, run.LostBytes(), err)
				}
			} else {
				run.Detach()
				eventually(t, "the end", func() bool {
					info := root.look(t.Context(), run.ID())
					return info.Status != nil && info.Status.Ended
				})
				run = attach(t, root, run.ID(), 0)
				var raw []byte
				err := errors.New("not read")
				for lost := (*LostError)(nil); err != nil; {
					raw, err = io.ReadAll(run.Stdout())
					if err != nil && !errors.As(err, &lost) {
						t.Fatal(err)
					}
				}
				if string(raw[len(raw)-8:]) != "the end\n" || len(raw) < 3<<20 {
					t.Errorf("%d bytes are kept", len(raw))
				}
			}
			if kB := privateKB(t, run.Info().Supervisor); kB > mostPrivate {
				t.Errorf("the supervisor has %.0f kB of its own", kB)
			} else {
				t.Logf("the supervisor has %.0f kB of its own", kB)
			}
			segs, err := filepath.Glob(filepath.Join(root.path(run.ID()), journalFile+"*"))
			if err != nil || len(segs) > journalParts+1 {
				t.Errorf("%d spool files, %v", len(segs), err)
			}
		})
	}
}
