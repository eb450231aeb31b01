package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// journaled starts a run that printed lines, twice the memory's worth, and waits with no client there.
func journaled(t *testing.T, root *Root) *Run {
	t.Helper()
	const lines = 2 * memorySize / lineLength
	spec := sh(`"$0"; read x`)
	spec.Args = append(spec.Args, self(t))
	spec.Env = append(withoutHelper(spec.Env), helperVar+"=lines", fmt.Sprintf("LINES=%d", lines))
	run := start(t, root, spec)
	eventually(t, "the lines", func() bool {
		return root.look(context.Background(), run.ID()).OutputEnd == lines*lineLength
	})
	run.Detach()
	return run
}

func TestJournalThatWasCutIsReported(t *testing.T) {
	t.Parallel()
	const whole = 2 * memorySize
	cut := func(t *testing.T, root *Root, id string) {
		segs, _, err := listSegments(root.path(id))
		if err != nil || len(segs) != 1 {
			t.Fatal(segs, err)
		}
		if err := os.Truncate(segs[0].path(), 10*lineLength); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("under a supervisor", func(t *testing.T) {
		root := openRoot(t, Options{})
		run := journaled(t, root)
		cut(t, root, run.ID())
		again := attach(t, root, run.ID(), 5*lineLength)
		if err := again.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		head, err := io.ReadAll(again.Stdout())
		var lost *LostError
		if !errors.As(err, &lost) || !lost.Damaged || lost.From != 10*lineLength || len(head) != 5*lineLength {
			t.Fatalf("%d bytes, %v", len(head), err)
		}
		if rest := readAll(t, again.Stdout()); int64(len(rest)) != whole-lost.To || !strings.HasSuffix(rest, numbered(whole/lineLength-1)) {
			t.Errorf("%d bytes follow", len(rest))
		}
	})
	t.Run("with the supervisor killed", func(t *testing.T) {
		root := openRoot(t, Options{})
		run := journaled(t, root)
		cut(t, root, run.ID())
		kill9(t, run.Info().Supervisor)
		eventually(t, "it is dead", func() bool { return !root.look(t.Context(), run.ID()).Supervised })
		var short *OffsetError
		if _, err := root.Attach(t.Context(), run.ID(), 20*lineLength); !errors.As(err, &short) || short.End != 10*lineLength {
			t.Errorf("%v", err)
		}
		checkLines(t, attach(t, root, run.ID(), 0).Stdout(), 0, 10)
	})
	t.Run("while the agent prints on", func(t *testing.T) {
		root := openRoot(t, Options{})
		run := start(t, root, sh(`cat`))
		for i := range 3 {
			if _, err := fmt.Fprintf(run.Stdin(), "line %d\n", i); err != nil {
				t.Fatal(err)
			}
			if got := readLine(t, run.Stdout()); got != fmt.Sprintf("line %d", i) {
				t.Errorf("%q", got)
			}
			segs, _, err := listSegments(root.path(run.ID()))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(segs[len(segs)-1].path(), 2); err != nil {
				t.Fatal(err)
			}
		}
		kill9(t, run.Info().Supervisor)
		await(t, "done", run.Done())
		got, err := io.ReadAll(attach(t, root, run.ID(), 0).Stdout())
		var lost *LostError
		if !errors.As(err, &lost) || string(got) != "li" || lost.To != 7 {
			t.Errorf("%q, %v: what is missing must not be made up", got, err)
		}
	})
}

func TestGarbageInTheDirectoryIsListedAndCollected(t *testing.T) {
	root := openRoot(t, Options{})
	for id, spec := range map[string]string{"empty": "", "garbage": "{", "other": `{"id":"another"}`} {
		if err := os.Mkdir(root.path(id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root.path(id), specFile), []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root.dir, stagingPrefix+"999999999-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	infos, err := root.List(t.Context())
	if err != nil || len(infos) != 3 {
		t.Fatal(infos, err)
	}
	for _, info := range infos {
		if info.Problem == "" || info.Alive {
			t.Errorf("%+v", info)
		}
	}
	if n, err := root.Prune(t.Context(), 0); n != 3 || err != nil {
		t.Errorf("%d pruned, %v", n, err)
	}
	reopen(t, root.dir, Options{})
	if entries, err := os.ReadDir(root.dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v are left", entries, err)
	}
}
