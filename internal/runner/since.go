package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ductor/internal/proctree"
)

// sinceFile says since when a directory of runs has been kept. No run is called like that.
const sinceFile = ".since"

// sinceNote is from when on, and in which life of the machine, no run can have been forgotten.
type sinceNote struct {
	Time time.Time `json:"time"`
	Boot string    `json:"boot"`
}

// Since is the time, by the clock of the first client that asked, from which on no run can have been forgotten: since the
// directory of runs was made, or the machine was started, when what was written last may be missing.
func (c *Client) Since(context.Context) (time.Time, error) {
	note := sinceNote{Time: time.Now(), Boot: proctree.BootID()}
	path := filepath.Join(c.dir, sinceFile)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, fmt.Errorf("ask since when runs are kept: %w", err)
	}
	var had sinceNote
	if err == nil && json.Unmarshal(raw, &had) == nil && had.Boot == note.Boot && note.Boot != "" {
		return had.Time, nil
	}
	if raw, err = json.Marshal(note); err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("note since when runs are kept: %w", err)
	}
	return note.Time, nil
}
