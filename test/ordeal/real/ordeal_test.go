package real

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/internal/testprogram"
	"ductor/test/ordeal/report"
)

var (
	seeds    = flag.Int("seeds", 2, "how many seeds to run")
	from     = flag.Uint64("from", 5, "the first seed")
	lasting  = flag.Duration("for", 0, "how long to begin further seeds, however many")
	parallel = flag.Int("boxes", 2, "how many seeds run at the same time")
	scenes   = flag.String("script", "", "a file with the steps to run instead of those of the seeds")
	keep     = flag.String("keep", "", "a directory for the files of seeds with violations")
	result   = flag.String("result", "", "a file for what was tried and found")
	onDisk   = flag.String("disk", "", "the disk of all seeds: machine, tmpfs or ext4; empty for what each seed says")
)

func TestMain(m *testing.M) {
	RunIfChild()
	os.Exit(m.Run())
}

// builds returns two directories with a ductor and its runner. The second program has an additional byte at its end,
// so that it counts as another build.
func builds(t *testing.T) []string {
	t.Helper()
	made := t.TempDir()
	if program := os.Getenv("DUCTOR_TEST_PROGRAM"); program != "" {
		made = filepath.Dir(program)
	} else if out, err := exec.Command("go", "build", "-o", made+"/", "ductor/cmd/ductor",
		"ductor/cmd/ductor-runner").CombinedOutput(); err != nil {
		t.Fatalf("build ductor: %v: %s", err, out)
	}
	var dirs []string
	for build := range 2 {
		dir := t.TempDir()
		for _, name := range []string{"ductor", "ductor-runner"} {
			if err := copyProgram(filepath.Join(made, name), filepath.Join(dir, name), build); err != nil {
				t.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

func copyProgram(from, to string, extra int) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		_, err = out.Write(make([]byte, extra))
	}
	return errors.Join(err, out.Close())
}

// Real processes are killed, suspended, upgraded and disconnected at random moments. Afterwards, every promise holds.
func TestOrdeal(t *testing.T) {
	if !testprogram.Long() {
		t.Skip("TestCases has a slice of it")
	}
	made := builds(t)
	total := report.Run{World: "real", Commit: commit(), Date: time.Now().UTC(), First: *from}
	began := time.Now()
	var wait sync.WaitGroup
	var mu sync.Mutex
	next := make(chan uint64)
	for range *parallel {
		wait.Go(func() {
			for seed := range next {
				one, err := runSeed(t, seed, made)
				if errors.Is(err, ErrNoBox) {
					t.Log(err)
					continue
				}
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				mu.Lock()
				total.Merge(one.Run)
				mu.Unlock()
			}
		})
	}
	for i := 0; i < *seeds || time.Since(began) < *lasting; i++ {
		next <- *from + uint64(i)
	}
	close(next)
	wait.Wait()
	total.Took, total.First = time.Since(began), *from
	if *result != "" {
		if err := total.Save(*result); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d seeds, %d prompts, %s; steps:%s\nfaults:%s", total.Seeds, total.Messages, total.Took.Round(time.Second),
		table(total.Steps), table(total.Faults))
}

// Each script reproduces a fixed defect.
func TestCases(t *testing.T) {
	pattern := "*"
	if !testprogram.Long() { // each takes some seconds
		pattern = "slice-*"
	}
	names, err := filepath.Glob("testdata/cases/" + pattern + ".txt")
	if err != nil || len(names) == 0 {
		t.Fatal("there are no cases", err)
	}
	made := builds(t)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			one, err := Execute(Job{Dir: t.TempDir(), Builds: made, Script: string(raw),
				Conditions: conditions{Disk: diskOfMachine, Line: fair, Deaf: true}})
			if errors.Is(err, ErrNoBox) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range one.Run.Violations {
				t.Error(v.Detail)
			}
		})
	}
}

// commit returns the version of this checkout, if Git knows it.
func commit() string {
	out, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	return strings.TrimSpace(string(out))
}

func table(counts map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "\n%6d %s", counts[name], name)
	}
	return b.String()
}

func runSeed(t *testing.T, seed uint64, made []string) (Report, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("ordeal-%d-", seed))
	if err != nil {
		return Report{}, err
	}
	job := Job{Seed: seed, Dir: dir, Builds: made, Conditions: conditionsOf(seed)}
	if *onDisk != "" {
		job.Conditions.Disk = diskKind(*onDisk)
	}
	if *scenes != "" {
		raw, err := os.ReadFile(*scenes)
		if err != nil {
			return Report{}, err
		}
		job.Script = string(raw)
	}
	one, err := Execute(job)
	t.Logf("seed %d: %s, %d violations", seed, one.Took.Round(time.Second), len(one.Run.Violations))
	if len(one.Run.Violations) > 0 {
		var all []string
		for _, v := range one.Run.Violations {
			all = append(all, v.Detail)
		}
		err = fmt.Errorf("%s\n%+v, and the script was\n%s", strings.Join(all, "\n"), one.Conditions, one.Script)
	}
	if err != nil && *keep != "" {
		_ = os.Rename(dir, filepath.Join(*keep, filepath.Base(dir)))
	}
	return one, errors.Join(err, os.RemoveAll(dir))
}
