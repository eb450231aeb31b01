package clitest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"ductor/cli"
	"ductor/cli/host"
)

// starts is a store for the starts of turns. It is a file in the directory of runs, so that the next launcher for that
// directory can read it. In ductor, the database is this store.
type starts struct {
	mu   sync.Mutex
	path string
}

func startsIn(dir string) *starts { return &starts{path: filepath.Join(dir, "starts.json")} }

// record implements cli.Recorder. When it stores the start of a turn, it deletes the run's BackgroundMark.
func (b *starts) record(_ context.Context, turn cli.TurnID, s cli.Start) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.read()
	if err != nil {
		return err
	}
	all[s.Run] = slices.DeleteFunc(all[s.Run], func(m cli.Mark) bool { return m.Turn == turn || !m.OfTurn() })
	if turn != cli.BackgroundMark || s.Note != "" {
		all[s.Run] = append(all[s.Run], cli.Mark{Turn: turn, Output: s.Output, Input: s.Input, Note: s.Note})
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(b.path, raw, 0o600)
}

func (b *starts) read() (map[cli.RunID][]cli.Mark, error) {
	all := map[cli.RunID][]cli.Mark{}
	raw, err := os.ReadFile(b.path)
	if os.IsNotExist(err) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(raw, &all)
}

// Left returns the runs that the launcher h finds, with the marks of their turns. dir is the launcher's directory of
// runs.
func Left(t testing.TB, h *host.Launcher, dir string) []cli.LeftRun {
	t.Helper()
	runs, err := h.Left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := startsIn(dir).read()
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		runs[i].Marks = all[runs[i].Run]
	}
	return runs
}
