package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sinceFile says since when a directory of runs has been kept. No run is called like that.
const sinceFile = ".since"

// since is from when on, and in which life of the machine, no run can have been forgotten.
type since struct {
	Time time.Time `json:"time"`
	Boot string    `json:"boot"`
}

// readSince reads the file, or makes it: in a new directory, and after the machine was started anew, when
// what was written last may be missing.
func readSince(dir string) (since, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return since{}, fmt.Errorf("read boot id: %w", err)
	}
	boot := strings.TrimSpace(string(raw))
	path := filepath.Join(dir, sinceFile)
	var s since
	raw, err = os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return since{}, fmt.Errorf("read since when runs are kept: %w", err)
	}
	if err == nil && json.Unmarshal(raw, &s) == nil && s.Boot == boot {
		return s, nil
	}
	s = since{Time: time.Now(), Boot: boot}
	if raw, err = json.Marshal(s); err != nil {
		return since{}, fmt.Errorf("write since when runs are kept: %w", err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return since{}, fmt.Errorf("write since when runs are kept: %w", err)
	}
	return s, nil
}

// Knows says whether no run started after that can have been forgotten.
func (h *Host) Knows(after time.Time) bool { return after.After(h.since.Time) }
