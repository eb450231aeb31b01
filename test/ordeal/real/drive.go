package real

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ductor/test/ordeal/report"
	"ductor/test/ordeal/scenario"
)

// Job describes a scenario or a soak that Execute runs in a new container.
type Job struct {
	Seed       uint64
	Dir        string   // directory for all files
	Builds     []string // two directories with a build of ductor and its runner each; an upgrade changes the build
	Conditions conditions
	Script     string // text of a scenario; if empty, the seed generates a scenario
	Soak       time.Duration
}

// Report is the result of a job.
type Report struct {
	Run        report.Run
	Script     string
	Conditions conditions
	Samples    []sample // measurements during a soak
	Took       time.Duration
}

const reportFile = "report.json"

// drive runs a scenario or a soak in its container. It reads the Job from the environment variable jobVar, and writes
// the Report to reportFile.
func drive() error {
	var job Job
	if err := json.Unmarshal([]byte(os.Getenv(jobVar)), &job); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	s := plan(job.Seed, job.Conditions)
	if job.Script != "" {
		var err error
		if s, err = scenario.Parse(job.Script); err != nil {
			return err
		}
	}
	if job.Soak > 0 {
		s = scenario.Scenario{Seed: job.Seed, Options: soakOptions()}
	}
	w, err := newWorld(job)
	if err != nil {
		return err
	}
	defer w.close()
	o := newOrdeal(w, job, s)
	if err := w.configure(s.Options, o.places.groups()); err != nil {
		return err
	}
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
