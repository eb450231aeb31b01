package simulated

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/report"
	"ductor/test/ordeal/scenario"
)

// line is the report of a process about a seed: at its beginning and at its end.
type line struct {
	Seed   uint64
	Played bool
	Took   time.Duration
	Run    report.Run
	Hash   string
	Found  []judge.Violation
}

// linesTo names the descriptor of the file to which a child process writes lines.
const linesTo = "ORDEAL_LINES"

// say writes a line to the parent process, if one requested seeds.
func say(l line) {
	fd, err := strconv.Atoi(os.Getenv(linesTo))
	if err != nil {
		return
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = syscall.Write(fd, append(text, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

const (
	atOnce   = 100              // seeds that one process plays
	mostSeed = 60 * time.Second // limit for one seed
)

// together plays seeds in several processes.
type together struct {
	t    *testing.T
	ends time.Time // zero for never

	mu    sync.Mutex
	next  uint64
	tried report.Run
	bad   []line
}

// playTogether plays seeds in several processes. It detects seeds that end their process or do not end.
func playTogether(t *testing.T) {
	all := &together{t: t, next: *from, tried: report.Run{World: "simulated", Commit: commit(), Date: time.Now().UTC(),
		First: *from}}
	began := time.Now()
	if *long > 0 {
		all.ends = began.Add(*long)
		*seeds = 1 << 62
	}
	var running sync.WaitGroup
	for range *jobs {
		running.Go(all.work)
	}
	running.Wait()
	took := time.Since(began)
	all.tried.Took = took
	t.Logf("%d seeds in %s, %s each; %d violate a rule; steps: %v", all.tried.Seeds, took.Round(time.Second),
		(took * time.Duration(*jobs) / time.Duration(max(1, all.tried.Seeds))).Round(time.Millisecond), len(all.bad),
		all.tried.Steps)
	if *result != "" {
		if err := all.tried.Save(*result); err != nil {
			t.Error(err)
		}
	}
	slices.SortFunc(all.bad, func(a, b line) int { return int(a.Seed) - int(b.Seed) })
	for _, l := range all.bad {
		t.Errorf("seed %d:\n%s", l.Seed, violationsOf(l))
	}
}

// commit returns the checked-out commit, or "" if git does not know it.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func violationsOf(l line) string {
	var b strings.Builder
	for _, v := range l.Found {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	return b.String()
}

// work plays seeds until none are left.
func (w *together) work() {
	for {
		w.mu.Lock()
		first := w.next
		last := min(first+atOnce, *from+*seeds)
		over := first >= last || !w.ends.IsZero() && time.Now().After(w.ends) || *until && len(w.bad) > 0
		w.next = last
		w.mu.Unlock()
		if over {
			return
		}
		for first < last {
			first = w.run(first, last)
		}
	}
}

// processFor returns a process that plays seeds.
func processFor(first, last uint64) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestSeeds$", "-test.timeout=0", "-from", fmt.Sprint(first), "-seeds",
		fmt.Sprint(last-first),
		"-steps", fmt.Sprint(*steps), "-agents", *only, fmt.Sprintf("-calm=%t", *calm))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	return cmd
}

// run plays seeds in a process, and returns the first one that the process did not play.
func (w *together) run(first, last uint64) uint64 {
	r, out, err := os.Pipe()
	if err != nil {
		w.t.Error(err)
		return last
	}
	defer r.Close()
	cmd := processFor(first, last)
	cmd.Env = append(cmd.Env, linesTo+"=3")
	cmd.ExtraFiles = []*os.File{out}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Start()
	out.Close()
	if err != nil {
		w.t.Error(err)
		return last
	}
	watch := time.AfterFunc(mostSeed, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	at, playing := first, false
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<24)
	for ; scan.Scan(); watch.Reset(mostSeed) {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			continue
		}
		at, playing = l.Seed, !l.Played
		if l.Played {
			at++
			w.played(l)
		}
	}
	watch.Stop()
	if _ = cmd.Wait(); playing { // the exit code only means that a seed failed
		text := said.String()
		l := line{Seed: at, Found: []judge.Violation{{Rule: "alive",
			Detail: "the process ended: " + text[:min(len(text), 4000)]}}}
		l.Run.Add(judge.Evidence{Scenario: scenario.Generate(at, profile())}, l.Found)
		w.played(l)
		at++
	}
	return at
}

// played counts a seed.
func (w *together) played(l line) {
	s := scenario.Generate(l.Seed, profile())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried.Merge(l.Run)
	if len(l.Found) > 0 {
		w.bad = append(w.bad, l)
		fmt.Fprintf(os.Stderr, "seed %d:\n%s%s\nagain: go test ./test/ordeal/simulated -run TestSeeds -from %d "+
			"-seeds 1 -steps %d\n\n", l.Seed, violationsOf(l), s, l.Seed, *steps)
	}
}
