// Package report stores the results of the ordeal, and writes docs/reliability.md from them.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// Run contains the results of a number of scenarios, one for each seed, that package simulated or package real has run.
// Each file in the directory results/runs contains one Run.
type Run struct {
	World      string // the package that ran the scenarios: "simulated" or "real"
	Commit     string
	Date       time.Time
	First      uint64 // the lowest seed
	Seeds      int
	Replayed   int // number of seeds that were played twice with exactly the same events
	Took       time.Duration
	Lived      time.Duration  // sum of the durations of all scenarios; package simulated counts simulated time
	Steps      map[string]int // number of steps of each kind
	Faults     map[string]int // number of faults of each kind
	Messages   int            // number of prompts that users sent
	Violations []Found
}

// Found is a violation of a rule in the scenario of a seed.
type Found struct {
	Seed   uint64
	Rule   string
	Detail string
}

// Add adds a scenario that was played, with the violations that the judge has found.
func (r *Run) Add(e judge.Evidence, found []judge.Violation) {
	if r.Steps == nil {
		r.Steps, r.Faults = map[string]int{}, map[string]int{}
	}
	r.Seeds++
	r.Lived += e.Ended.Sub(e.Began)
	for _, step := range e.Scenario.Steps {
		r.Steps[scenario.Kind(step)]++
		if scenario.IsFault(step) {
			r.Faults[scenario.Kind(step)]++
		}
		if _, ok := scenario.PromptOf(step); ok {
			r.Messages++
		}
	}
	for _, v := range found {
		r.Violations = append(r.Violations, Found{e.Scenario.Seed, v.Rule, v.String()})
	}
}

// Merge adds the results of a run with other seeds, as if both runs were one.
func (r *Run) Merge(o Run) {
	if r.Steps == nil {
		r.Steps, r.Faults = map[string]int{}, map[string]int{}
	}
	r.Seeds, r.Replayed, r.Messages = r.Seeds+o.Seeds, r.Replayed+o.Replayed, r.Messages+o.Messages
	r.Took, r.Lived = r.Took+o.Took, r.Lived+o.Lived
	for kind, n := range o.Steps {
		r.Steps[kind] += n
	}
	for kind, n := range o.Faults {
		r.Faults[kind] += n
	}
	r.Violations = append(r.Violations, o.Violations...)
	if r.First == 0 || o.First < r.First {
		r.First = o.First
	}
}

// Save writes the run to a file.
func (r Run) Save(path string) error { return save(path, r) }

func save(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Runs reads all runs in a directory, oldest first.
func Runs(dir string) (all []Run, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var r Run
		if err := load(name, &r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b Run) int { return a.Date.Compare(b.Date) })
	return all, nil
}

func load(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Defect is a planted bug, with the result of the search for it.
type Defect struct {
	Name  string
	Title string // describes the bug
	Seeds int    // number of seeds that were played, up to the seed that found the bug
	Found bool
	Rule  string // the rule that scenarios violate because of the bug
	Seed  uint64
}

// SaveDefects writes the results of command defects to a file.
func SaveDefects(path string, all []Defect) error { return save(path, all) }

// Defects reads the results of command defects from a file.
func Defects(path string) (all []Defect, err error) { return all, load(path, &all) }

// Load reads all results below a directory: runs/*.json, defects.json, fixes.json and causes.json.
func Load(dir string) (r Results, err error) {
	if r.Runs, err = Runs(filepath.Join(dir, "runs")); err != nil {
		return r, err
	}
	if r.Defects, err = Defects(filepath.Join(dir, "defects.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	if r.Defects, err = withAll(r.Defects, filepath.Join(dir, "..", "defects", "*.patch")); err != nil {
		return r, err
	}
	if r.Fixes, err = Fixes(filepath.Join(dir, "fixes.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	if r.Causes, err = Causes(filepath.Join(dir, "causes.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	return r, nil
}

// withAll adds a Defect for each patch that has no recorded result. hunted contains the recorded results, and patches
// is a glob pattern for the patches (see command defects).
func withAll(hunted []Defect, patches string) ([]Defect, error) {
	paths, err := filepath.Glob(patches)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".patch"), "-")
		if slices.ContainsFunc(hunted, func(d Defect) bool { return d.Name == name }) {
			continue
		}
		title, _, _ := strings.Cut(string(text), "\n")
		hunted = append(hunted, Defect{Name: name, Title: strings.TrimSuffix(title, ".")})
	}
	slices.SortFunc(hunted, func(a, b Defect) int { return strings.Compare(a.Name, b.Name) })
	return hunted, nil
}
