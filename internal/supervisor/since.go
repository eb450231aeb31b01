package supervisor

import (
	"context"
	"ductor/internal/proctree"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// sinceFile says since when a directory of runs has been kept. No run is called like that.
const sinceFile = ".since"

// sinceNote is from when on, and in which life of the machine, no run can have been forgotten.
type sinceNote struct {
	Time time.Time `json:"time"`
	Boot string    `json:"boot"`
}

// since reads the file, or makes it: in a new directory, and after the machine was started anew, when what
// was written last may be missing.
func (g *localEnv) since(_ context.Context, now time.Time) (time.Time, error) {
	boot := proctree.BootID()
	if boot == "" {
		return time.Time{}, errors.New("this machine does not tell its boot id")
	}
	var note sinceNote
	err := readJSON(g.dir, sinceFile, &note)
	var pathError *fs.PathError
	if errors.As(err, &pathError) && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, err
	}
	if err == nil && note.Boot == boot {
		return note.Time, nil
	}
	note = sinceNote{Time: now, Boot: boot}
	if err := writeJSON(g.dir, sinceFile, note); err != nil {
		return time.Time{}, fmt.Errorf("note since when runs are kept: %w", err)
	}
	return note.Time, nil
}
