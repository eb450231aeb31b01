// Command defects tests the ordeal itself. It activates planted bugs of ductor, one after another, and plays scenarios
// with package simulated until the judge finds the bug. It prints the seed and the rule that found the bug, and stores
// both for docs/reliability.md. If no rule finds a bug, the ordeal has a gap.
//
//	go run ./test/ordeal/defects [-seeds 500] [name…]
//
// Each bug is a patch. The command applies all patches, in the order of their numbers, to copies of ductor's files. An
// overlay of the go command uses these copies, so the working tree does not change. The program contains all bugs at
// the same time. Each bug calls package planted to find out whether it is active.
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
	sound found // cache of violatedWithoutBug: the rules that each seed violates although no bug is planted
}

func (h *hunt) path(name string) string {
	path, err := filepath.Abs(filepath.Join(h.dir, name))
	if err != nil {
		panic(err) // the working directory was deleted
	}
	return path
}

// find plays seeds with a planted bug until it finds the bug: a seed violates a rule, and the same seed does not
// violate the rule without the bug.
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

// confirmed plays a seed again, with and without the bug, because the result may differ slightly between two plays. It
// returns the rules that the seed violates only with the bug.
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

// playsWithoutBug is how often violatedWithoutBug plays a seed. One play is not enough, because the result may differ
// slightly between plays.
const playsWithoutBug = 3

// violatedWithoutBug returns the rules that a seed violates without a planted bug.
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

// found contains the violated rules of each seed.
type found map[int][]string

var (
	seedLine      = regexp.MustCompile(`(?:^|_test\.go:\d+: )seed (\d+):$`)
	violationLine = regexp.MustCompile(`^ +([a-z]+)(?: \(p\d+\))?: `)
)

// play plays n seeds. If defect is empty, no bug is active. If stopEarly is true, play stops at the first seed that
// violates a rule.
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
