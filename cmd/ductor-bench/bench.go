package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	rows   []row
	rounds int
	sizes  sizes
	// scratch is the directory with a copy of ductor's programs. The benchmark finds ductor's processes by the path of the
	// copy. No other ductor on this machine runs the copy: sharing the program's pages would reduce the PSS.
	scratch  string
	progress io.Writer
}

// Time limits for one benchmark with one bot.
const (
	patience     = 3 * time.Minute
	longPatience = 20 * time.Minute
)

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

// prepare creates the scratch directory, with a copy of ductor in it.
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
	if program == "" {
		program = beside()
	}
	if program == "" {
		program, err = b.build()
		if err != nil {
			return err
		}
	}
	if err := copyProgram(program, filepath.Join(b.scratch, programs[0])); err != nil {
		return err
	}
	err = copyProgram(filepath.Join(filepath.Dir(program), programs[1]), filepath.Join(b.scratch, programs[1]))
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(b.progress, "there is no ductor-runner beside it: ductor is its own runner")
		return nil
	}
	return err
}

// programs are the names of ductor's executables.
var programs = [...]string{"ductor", "ductor-runner"}

// build builds ductor's executables and returns the path of ductor.
func (b *bench) build() (string, error) {
	dir := filepath.Join(b.scratch, "built")
	for _, name := range programs {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, name), "ductor/cmd/"+name)
		cmd.Env = os.Environ()
		if name != programs[0] {
			cmd.Env = append(cmd.Env, "CGO_ENABLED=0") // like the build in docs/install.md
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build ductor, since none is beside this program (-ductor names one): %w: %s", err,
				out)
		}
	}
	return filepath.Join(dir, programs[0]), nil
}

// copyProgram copies a file in small pieces, as installers do. A large write would put the file into the page cache in
// units of up to 2 MB. A newer kernel then maps a whole unit even if the program uses only one byte of the unit, and
// the memory figures would be wrong.
func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read the ductor to measure: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return fmt.Errorf("copy the ductor to measure: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 32<<10))
	return err
}

// beside returns the path of the ductor that is in the same directory as this program, or "".
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

// run measures each row several times, once in each round. It measures the minimal bot right after ductor, so that the
// machine is in the same state for both bots.
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

// measurement contains the figures of one row for one bot in one round.
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

// load returns the machine's load average of the last minute, or zero if it is unknown.
func load() float64 {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

func machine() string {
	return fmt.Sprintf("%d cores, %s %s/%s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
