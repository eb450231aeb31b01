package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

func benchCommand() *cobra.Command {
	b := bench{}
	var only string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure ductor on this machine against its targets",
		Long: "bench runs `ductor run` as a process of its own against a simulated Telegram and the scripted agent,\n" +
			"and prints each figure beside its target. A target of time or memory that is missed is marked and no\n" +
			"more; an answer that did not arrive as it should makes the exit code 1.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if b.only, err = regexp.Compile(only); err != nil {
				return fmt.Errorf("--only: %w", err)
			}
			return b.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&only, "only", "", "measure the groups whose name matches this expression")
	cmd.Flags().StringVar(&b.profiles, "profile", "", "write a CPU and a heap profile of each ductor into this directory")
	return cmd
}

// bench is one run of the benchmarks.
type bench struct {
	only     *regexp.Regexp
	profiles string
	self     string // the program that is measured
	env      []string
	scratch  string
}

// figure is one line of the table.
type figure struct {
	what, measured, target string
	met                    bool
	law                    bool // about what arrives, not about how fast: missing it is a defect
}

// group is what is measured together.
type group struct {
	name    string
	measure func(context.Context, *bench) ([]figure, error)
}

// stages are done one after another; the groups of a stage side by side, because they mostly wait.
func stages() [][]group {
	return [][]group{
		{{"latency", latencyFigures}},
		{{"stream", streamFigures}},
		{{"crowd", crowdFigures}},
		{{"long", longFigures}},
		{{"idle", idleFigures}},
		{{"abort", abortFigures}},
		{{"new", newFigures}},
		{{"strict", strictFigures}, {"down", downFigures}},
	}
}

// benchPatience bounds a group: what takes longer does not happen.
const benchPatience = 60 * time.Second

var errBench = errors.New("something did not arrive as it should")

func (b *bench) run(ctx context.Context, out io.Writer) (err error) {
	if b.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	if b.scratch, err = os.MkdirTemp("", "ductor-bench-"); err != nil {
		return fmt.Errorf("make a directory for the benchmarks: %w", err)
	}
	defer os.RemoveAll(b.scratch)
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(out, "%d cores, %s %s/%s, load before: %.14s\n\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, load)
	printRow(out, "what", "measured", "target", "met")
	broken := false
	for _, stage := range stages() {
		for _, f := range b.stage(ctx, stage) {
			f.print(out)
			broken = broken || f.law && !f.met
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if broken {
		return errBench
	}
	return nil
}

func (b *bench) stage(ctx context.Context, groups []group) (all []figure) {
	results := make([][]figure, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		if !b.only.MatchString(g.name) {
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, benchPatience)
			defer cancel()
			figures, err := g.measure(ctx, b)
			if err != nil {
				figures = append(figures, figure{what: g.name, measured: err.Error(), law: true})
			}
			results[i] = figures
		})
	}
	wg.Wait()
	for _, r := range results {
		all = append(all, r...)
	}
	return all
}

func (f figure) print(out io.Writer) {
	met := "met"
	if !f.met {
		met = "NOT MET"
	}
	printRow(out, f.what, f.measured, f.target, met)
}

func printRow(out io.Writer, what, measured, target, met string) {
	fmt.Fprintf(out, "%-52s | %-44s | %-24s | %s\n", what, measured, target, met)
}
