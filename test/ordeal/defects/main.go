// Command defects checks that the tests in test/ordeal find bugs. It contains bugs that were added to ductor on purpose
// (planted bugs). For each bug, the command runs ductor with this bug in random scenarios (see package simulated) until
// package judge reports a violated rule. The command prints the seed of the scenario and the rule, and stores both for
// docs/reliability.md. It fails if a bug violates no rule.
//
//	go run ./test/ordeal/defects [-seeds 500] [name…]
//
// Each bug is a patch. The command applies all patches, in the order of their numbers, to copies of ductor's files. It
// passes the copies to the go command as an overlay, so the working tree does not change. The program contains all bugs
// at the same time, and package planted selects the active one.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/report"
)

const (
	patches = "test/ordeal/defects"
	world   = "./test/ordeal/simulated"
)

var (
	seeds   = flag.Int("seeds", 500, "how many seeds to play for each defect")
	results = flag.String("results", "test/ordeal/results/defects.json", "where the results are kept")
	scratch = flag.String("scratch", "", "where programs are built; a temporary directory if empty")
	jobs    = flag.Int("jobs", 1, "how many processes play seeds at once")
	built   = flag.Bool("built", false, "use the program that an earlier call left in -scratch")
	replay  = flag.String("replay", "", "an overlay that makes runs exact, of go run ./test/ordeal/replay")
)

func main() {
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "defects:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	h := &hunt{dir: *scratch, sound: found{}}
	if h.dir == "" {
		dir, err := os.MkdirTemp("", "defects")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		h.dir = dir
	}
	planted, err := h.build()
	if err != nil {
		return err
	}
	table, err := report.Defects(*results)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	missed := 0
	for _, d := range planted {
		if len(names) > 0 && !slices.Contains(names, d.Name) {
			continue
		}
		if err := h.find(&d); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
		fmt.Printf("%-24s %5d  %s\n", d.Name, d.Seeds, d.Rule)
		if !d.Found {
			missed++
		}
		table = append(slices.DeleteFunc(table, func(o report.Defect) bool { return o.Name == d.Name }), d)
		slices.SortFunc(table, func(a, b report.Defect) int { return strings.Compare(a.Name, b.Name) })
		if err := report.SaveDefects(*results, table); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d planted defects were not found", missed)
	}
	return nil
}

type hunt struct {
	dir   string
	sound found // results of violatedWithoutBug, which are expensive to compute
}

func (h *hunt) path(name string) string {
	path, err := filepath.Abs(filepath.Join(h.dir, name))
	if err != nil {
		panic(err) // Abs fails only if the working directory no longer exists
	}
	return path
}

// find runs the scenarios of many seeds with a planted bug. It stops at a scenario that violates a rule with the bug
// and does not violate the rule without the bug.
func (h *hunt) find(d *report.Defect) error {
	d.Seeds = *seeds
	for from := 1; from <= *seeds; {
		found, err := h.play(d.Name, from, *seeds-from+1, true)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, seed := range slices.Sorted(maps.Keys(found)) {
			rules, err := h.confirmed(d.Name, seed, found[seed])
			if err != nil {
				return err
			}
			if len(rules) > 0 {
				d.Found, d.Seeds, d.Seed, d.Rule = true, seed, uint64(seed), strings.Join(rules, ", ")
				return nil
			}
			from = seed + 1
		}
	}
	return nil
}

// confirmed runs the scenario of a seed again, with and without the bug, because two runs of a scenario may differ
// slightly. It returns those of the given rules that the scenario violates with the bug and not without the bug.
func (h *hunt) confirmed(defect string, seed int, rules []string) ([]string, error) {
	sound, err := h.violatedWithoutBug(seed)
	if err != nil {
		return nil, err
	}
	rules = without(rules, sound)
	if len(rules) == 0 {
		return nil, nil
	}
	found, err := h.play(defect, seed, 1, false)
	return slices.DeleteFunc(rules, func(r string) bool { return !slices.Contains(found[seed], r) }), err
}

// playsWithoutBug is how often violatedWithoutBug runs a scenario. A single run is not enough, because two runs of a
// scenario may differ slightly.
const playsWithoutBug = 3

// violatedWithoutBug runs the scenario of a seed with no active bug, and returns the rules that ductor violated.
func (h *hunt) violatedWithoutBug(seed int) ([]string, error) {
	if rules, known := h.sound[seed]; known {
		return rules, nil
	}
	var rules []string
	for range playsWithoutBug {
		found, err := h.play("", seed, 1, false)
		if err != nil {
			return nil, err
		}
		rules = append(rules, found[seed]...)
	}
	h.sound[seed] = rules
	return rules, nil
}

func without(rules, others []string) []string {
	return slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return slices.Contains(others, r) })
}

// build applies all patches, compiles the tests of package simulated, and returns the list of bugs.
func (h *hunt) build() (planted []report.Defect, err error) {
	replace, err := runtimeOverlay()
	if err != nil {
		return nil, err
	}
	all, err := filepath.Glob(filepath.Join(patches, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := h.apply(string(text), replace); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".patch"), "-")
		title, _, _ := strings.Cut(string(text), "\n")
		planted = append(planted, report.Defect{Name: name, Title: strings.TrimSuffix(title, ".")})
	}
	overlay := h.path("overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if *built {
		return planted, nil
	}
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", h.path("world.test"),
		world).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	return planted, nil
}

// runtimeOverlay returns the overlay that makes runs deterministic (see command replay). It returns nil if the
// environment does not name an overlay.
func runtimeOverlay() (map[string]string, error) {
	o := struct{ Replace map[string]string }{map[string]string{}}
	if *replay == "" {
		return o.Replace, nil
	}
	text, err := os.ReadFile(*replay)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	return o.Replace, err
}

var patched = regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`)

// apply applies a patch to copies of the files that the patch changes, and adds the copies to replace.
func (h *hunt) apply(patch string, replace map[string]string) error {
	dir := h.path("source")
	for _, m := range patched.FindAllStringSubmatch(patch, -1) {
		from, err := filepath.Abs(m[1])
		if err != nil {
			return err
		}
		if _, copied := replace[from]; copied {
			continue
		}
		source, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, m[1])
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, source, 0o600); err != nil {
			return err
		}
		replace[from] = to
	}
	cmd := exec.Command("git", "apply", "-p1", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(patch)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apply: %w\n%s", err, out)
	}
	return nil
}

// found maps a seed to the names of the rules that were violated in the seed's scenario.
type found map[int][]string

var (
	seedLine      = regexp.MustCompile(`(?:^|_test\.go:\d+: )seed (\d+):$`)
	violationLine = regexp.MustCompile(`^ +([a-z]+)(?: \(p\d+\))?: `)
)

// play runs the scenarios of n seeds, the first of which is the seed `from`. If defect is empty, no bug is active. If
// stopEarly is true, play stops after the first scenario that violates a rule.
func (h *hunt) play(defect string, from, n int, stopEarly bool) (found, error) {
	cmd := exec.Command(h.path("world.test"), "-test.run", "^TestSeeds$", "-test.timeout", "0", "-jobs",
		strconv.Itoa(*jobs),
		"-from", strconv.Itoa(from), "-seeds", strconv.Itoa(n), fmt.Sprintf("-until-found=%t", stopEarly))
	cmd.Dir, cmd.Env = world, append(os.Environ(), "ORDEAL_DEFECT="+defect)
	out, failed := cmd.CombinedOutput()
	all := parse(string(out))
	if failed != nil && len(all) == 0 {
		return nil, fmt.Errorf("play: %w\n%s", failed, out)
	}
	return all, nil
}

func parse(out string) found {
	all, seed := found{}, 0
	for line := range strings.Lines(out) {
		if m := seedLine.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			seed, _ = strconv.Atoi(m[1]) // never fails, because the pattern matches only digits
			continue
		}
		m := violationLine.FindStringSubmatch(line)
		if m != nil && isRule(m[1]) && !slices.Contains(all[seed], m[1]) {
			all[seed] = append(all[seed], m[1])
		}
	}
	return all
}

func isRule(name string) bool {
	return slices.ContainsFunc(judge.Rules(), func(r judge.Rule) bool { return r.Name == name })
}
