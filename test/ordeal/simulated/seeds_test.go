package simulated

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/report"
	"ductor/test/ordeal/scenario"
)

var (
	from   = flag.Uint64("from", 1, "the first seed")
	seeds  = flag.Uint64("seeds", 0, "how many seeds to play; 0: a few without faults")
	steps  = flag.Int("steps", 20, "the most steps of a scenario")
	calm   = flag.Bool("calm", false, "play without faults")
	only   = flag.String("agents", "claude,codex,gemini,copilot", "the agents of the worlds")
	jobs   = flag.Int("jobs", 0, "how many processes play seeds at once; 0: this one does")
	until  = flag.Bool("until-found", false, "end at the first seed that violates a rule")
	result = flag.String("result", "", "a file for the result of TestReplay, and of TestSeeds with -jobs")
	long   = flag.Duration("for", 0, "play seeds for so long, however many these are")
)

func profile() scenario.Profile {
	return scenario.Profile{Steps: *steps, Agents: strings.Split(*only, ","), Without: Without(), Calm: *calm}
}

// outcome is the result of a scenario.
type outcome struct {
	evidence judge.Evidence
	found    []judge.Violation
	log      []string
	hash     string
}

// play plays a scenario in an empty directory, and judges it.
func play(t *testing.T, s scenario.Scenario) (found []judge.Violation, log []string, hash string) {
	o := playWhole(t, s)
	return o.found, o.log, o.hash
}

func playWhole(t *testing.T, s scenario.Scenario) (o outcome) {
	base := os.TempDir()
	if _, err := os.Stat("/dev/shm"); err == nil {
		base = "/dev/shm" // memory is faster than a disk
	}
	dir := filepath.Join(base, fmt.Sprintf("ordeal-%06d-%010d", os.Getpid()%1e6, s.Seed))
	defer os.RemoveAll(dir)
	if err := Prepare(); err != nil {
		t.Fatal(err)
	}
	SetChance(t, s.Seed)
	collectGarbage()
	synctest.Test(t, func(t *testing.T) {
		o.evidence, o.log, o.hash = Play(t, dir, s)
		o.found = judge.Judge(o.evidence)
	})
	return o
}

// collectGarbage runs the collector. Afterwards the collector does not run by itself, because it wakes goroutines in a
// random order.
func collectGarbage() {
	debug.SetGCPercent(-1)
	reserve()
	runtime.GC()
}

// reserve allocates memory that nothing uses, so that the kernel need not provide it. The runtime returns freed memory
// to the kernel if it has more than 110 % of the heap at the last collection. With a large heap, it returns nothing, and
// the next scenario can use the memory of this one.
var reserve = sync.OnceValue(func() []byte { return make([]byte, 1<<30) })

// sliceOfGate is the number of seeds in the gate.
const sliceOfGate = 10

// TestSeeds plays the scenarios of some seeds.
func TestSeeds(t *testing.T) {
	if *seeds == 0 && *long == 0 {
		*seeds, *calm = sliceOfGate, true
	}
	if *jobs > 0 {
		playTogether(t)
		return
	}
	for seed := *from; seed < *from+*seeds && !(*until && t.Failed()); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := scenario.Generate(seed, profile())
			began := time.Now()
			say(line{Seed: seed})
			o := playWhole(t, s)
			l := line{Seed: seed, Played: true, Took: time.Since(began), Hash: o.hash, Found: o.found}
			l.Run.Add(o.evidence, o.found)
			say(l)
			for _, v := range o.found {
				t.Error(v)
			}
			if t.Failed() || testing.Verbose() && *seeds == 1 {
				t.Logf("%s\n%s\nagain: go test ./test/ordeal/simulated -run TestSeeds -from %d -seeds 1 -steps %d", s,
					strings.Join(o.log, "\n"), seed, *steps)
			}
		})
	}
}

// TestReplay plays each seed in two processes and compares the logs. With -result, it stores how many logs were equal. The
// logs are equal only with the overlay of command replay.
func TestReplay(t *testing.T) {
	if *seeds == 0 {
		t.Skip("no -seeds")
	}
	tried := report.Run{World: "simulated", Commit: commit(), Date: time.Now().UTC(), First: *from}
	for seed := *from; seed < *from+*seeds; seed++ {
		one, other := logOf(t, seed), logOf(t, seed)
		at := 0
		for at < len(one) && at < len(other) && one[at] == other[at] {
			at++
		}
		if at == len(one) && at == len(other) {
			tried.Replayed++
			continue
		}
		t.Logf("seed %d differs at line %d of %d and %d:", seed, at, len(one), len(other))
		for _, log := range [][]string{one, other} {
			t.Logf("%.300q", log[max(0, at-1):min(at+3, len(log))])
		}
	}
	tried.Seeds, tried.Took = int(*seeds), time.Since(tried.Date)
	t.Logf("%d of %d seeds replayed", tried.Replayed, tried.Seeds)
	if *result != "" {
		if err := tried.Save(*result); err != nil {
			t.Error(err)
		}
	}
}

// logOf plays a seed in a separate process and returns its log.
func logOf(t *testing.T, seed uint64) (lines []string) {
	cmd := processFor(seed, seed+1)
	cmd.Args = append(cmd.Args, "-test.v")
	out, _ := cmd.Output() // an error means that the seed violates a rule
	for line := range strings.Lines(string(out)) {
		if said, is := strings.CutPrefix(line, "        "); is {
			lines = append(lines, said)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("seed %d logged nothing: %s", seed, out)
	}
	return lines
}
