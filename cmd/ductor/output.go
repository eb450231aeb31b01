package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ductor/cli"
	"ductor/cmd/ductor/sub"
	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/runner"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// printOutput prints the output of a run, and continues until the run ends. If all is true, it prints all turns.
// Otherwise it prints only the newest turn.
func printOutput(cmd *cobra.Command, from *source, id string, all bool) error {
	return withRuns(cmd.Context(), from, cmd.ErrOrStderr(), func(envs []environment.Runs) error {
		run, err := findRun(cmd.Context(), envs, id, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		offset := int64(0)
		if !all {
			if offset, err = turnOffset(cmd.Context(), from, run.Info); err != nil {
				return err
			}
		}
		return follow(cmd.Context(), run.at.Root, run.ID, offset, cmd.OutOrStdout(), cmd.ErrOrStderr())
	})
}

// turnOffset returns the position in the output of a run at which its newest turn begins.
func turnOffset(ctx context.Context, from *source, info runner.Info) (offset int64, err error) {
	cfg, err := from.loadPlaces(io.Discard) // withRuns has already printed the configuration's mistakes
	if err != nil {
		return 0, err
	}
	db, err := store.OpenReadOnly(ctx, filepath.Join(cfg.Storage.Dir, app.DatabaseFile), store.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, start, err := db.LastStart(ctx, cli.RunID(info.ID))
	if errors.Is(err, orchestrator.ErrNoTurn) { // no turn has started in this run, so print all of its output
		return 0, nil
	}
	return start.Output, err
}

// follow copies the output of a run to out until the run ends or ctx is done. In both cases it returns nil.
func follow(ctx context.Context, root *runner.Client, id string, offset int64, out, notes io.Writer) error {
	run, err := root.Follow(ctx, id, offset)
	if err != nil {
		return err
	}
	leave := context.AfterFunc(ctx, run.Detach)
	defer run.Detach()
	defer leave()
	buf := make([]byte, 64<<10)
	for {
		n, err := run.Stdout().Read(buf)
		if _, werr := out.Write(buf[:n]); werr != nil {
			return werr
		}
		var lost *runner.LostError
		switch {
		case err == nil:
		case errors.As(err, &lost):
			fmt.Fprintln(notes, "ductor:", lost)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, io.EOF):
			fmt.Fprintln(notes, "ductor:", sub.PlainLine(endOf(run.Exit())))
			return nil
		default:
			return err
		}
	}
}
