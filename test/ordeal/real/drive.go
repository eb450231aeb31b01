package real

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Job is what a box is to do. The zero Script is made from the seed.
type Job struct {
	Seed   uint64
	Dir    string   // for all its files
	Builds []string // directories with a ductor and its runner each: two builds, for upgrades
	Disk   diskKind
	Script []string // the steps; none: those of the seed
	Soak   time.Duration
}

// Report is what came out.
type Report struct {
	Script     []string
	Faults     map[string]int // how often each kind of fault struck
	Prompts    int
	Violations []string
	Samples    []sample // of a soak
	Took       time.Duration
}

const reportFile = "report.json"

// drive is the driver of a box.
func drive() error {
	var job Job
	if err := json.Unmarshal([]byte(os.Getenv(jobVar)), &job); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	w, err := newWorld(job)
	if err != nil {
		return err
	}
	defer w.close()
	o := newOrdeal(w, job)
	if job.Soak > 0 {
		o.soak(job.Soak)
	} else {
		o.run()
	}
	raw, err := json.MarshalIndent(o.report, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(job.Dir, reportFile), raw, 0o600)
}
