package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench is one run of the benchmarks.
type bench struct {
	rows     []row
	rounds   int
	sizes    sizes
	scratch  string // has a copy of ductor, so that its processes are told from other ductors and share no memory with them
	progress io.Writer
}

// patience bounds what one bot may take for one row.
const (
	patience     = 3 * time.Minute
	longPatience = 20 * time.Minute
)

// choose picks the rows to measure.
func choose(only string, long bool) ([]row, error) {
	var chosen []row
	var names []string
	for _, r := range rows() {
		names = append(names, r.name)
		if r.name == only || only == "" && (long || !r.long) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no row is called %q; there are %s", only, strings.Join(names, ", "))
	}
	return chosen, nil
}

// prepare makes the scratch directory with a copy of ductor.
func (b *bench) prepare(program string) (err error) {
	if b.scratch, err = os.MkdirTemp("", "ductor-bench-"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(b.scratch)
		}
	}()
	if b.scratch, err = filepath.EvalSymlinks(b.scratch); err != nil {
		return err
	}
	copied := filepath.Join(b.scratch, "ductor")
	if program == "" {
		if program = beside(); program == "" {
			out, err := exec.Command("go", "build", "-o", copied, "ductor/cmd/ductor").CombinedOutput()
			if err != nil {
				return fmt.Errorf("build ductor, since none is beside this program (-ductor names one): %w: %s", err, out)
			}
			return nil
		}
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the ductor to measure: %w", err)
	}
	return os.WriteFile(copied, data, 0o700)
}

// beside is the ductor in the directory of this program, if there is one.
func beside() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), "ductor")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// run measures every row once a round. In each round the floor follows ductor at once, so that both find the machine
// alike.
func (b *bench) run(ctx context.Context) *report {
	r := newReport(b)
	for round := range b.rounds {
		for _, row := range b.rows {
			if row.long && round > 0 {
				continue
			}
			fmt.Fprintf(b.progress, "round %d of %d: %s\n", round+1, b.rounds, row.name)
			r.add(row, ductorBot, b.measure(ctx, row, ductorBot))
			if row.floor {
				r.add(row, floorBot, b.measure(ctx, row, floorBot))
			}
			if ctx.Err() != nil {
				return r
			}
		}
	}
	r.LoadAfter = load()
	return r
}

// measurement is what a row yields of one bot in one round.
type measurement struct {
	values []float64
	err    error
}

func (b *bench) measure(ctx context.Context, row row, bot botName) (m measurement) {
	limit := patience
	if row.long {
		limit = longPatience
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := b.newSetup(ctx, bot, row.extra)
	if err != nil {
		return measurement{err: err}
	}
	m.values, m.err = row.measure(ctx, s)
	m.err = errors.Join(m.err, s.close())
	if m.err == nil && len(m.values) != len(row.figures) {
		m.err = fmt.Errorf("%d values for %d figures", len(m.values), len(row.figures))
	}
	if m.err == nil && slices.ContainsFunc(m.values, math.IsNaN) {
		m.err = errors.New("a figure has no samples")
	}
	return m
}

// load is the load of the last minute; zero where the system does not tell.
func load() float64 {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

func machine() string {
	return fmt.Sprintf("%d cores, %s %s/%s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
