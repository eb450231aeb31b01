// Command ductor-bench compares the speed of ductor in its default configuration with a minimal bot, the floor.
//
// It runs the real ductor as a separate process, with the scripted agent and with a simulated Telegram in this process.
// It is not installed for users.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"ductor/cmd/ductor-bench/floor"
	"ductor/internal/sim/agent"
)

// floorArg is the argument that starts this program as the minimal bot. Three more arguments follow: the address of the
// API, the agent's program, and a directory.
const floorArg = "floor"

func main() {
	beChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "ductor-bench:", err)
		os.Exit(1)
	}
}

// beChild checks whether the benchmark started this process as the scripted agent or as the minimal bot. If so, it runs
// the agent or the bot and exits.
func beChild() {
	switch {
	case filepath.Base(os.Args[0]) == agent.Claude:
		os.Exit(runAgent())
	case len(os.Args) == 5 && os.Args[1] == floorArg:
		fmt.Fprintln(os.Stderr, floor.New(os.Args[2], os.Args[3], os.Args[4]).Run())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	flags := flag.NewFlagSet("ductor-bench", flag.ContinueOnError)
	flags.SetOutput(errs)
	program := flags.String("ductor", "", "the `program` to measure, with the ductor-runner beside it (default: "+
		"ductor beside this one, else those of this module)")
	rounds := flags.Int("rounds", 3, "how often each row is measured; the best counts")
	only := flags.String("only", "", "measure this `row` alone")
	long := flags.Bool("long", false, "measure the rows that take minutes too")
	asJSON := flags.Bool("json", false, "print an object with every round instead of the table")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only, *long)
	if err != nil {
		return err
	}
	if *rounds < 1 || flags.NArg() > 0 {
		return fmt.Errorf("there is at least one round, and no argument")
	}
	b := &bench{rows: chosen, rounds: *rounds, sizes: fullSizes(), progress: errs}
	if err := b.prepare(*program); err != nil {
		return err
	}
	defer os.RemoveAll(b.scratch)
	r := b.run(ctx)
	print := r.table
	if *asJSON {
		print = r.json
	}
	return errors.Join(print(out), r.failure(), context.Cause(ctx))
}
