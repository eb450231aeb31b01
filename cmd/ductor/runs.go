package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ductor/cmd/ductor/sub"
	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/runner"
)

// listedRun is a run of an agent, with the environment in which it runs.
type listedRun struct {
	runner.Info
	at environment.Runs
}

// withRuns opens the environments of a configuration, and calls f with their runs. ductor need not be running. If
// withRuns cannot open a sandbox, it prints a line to notes and continues.
func withRuns(ctx context.Context, from *source, notes io.Writer, f func([]environment.Runs) error) (err error) {
	cfg, err := from.loadPlaces(notes)
	if err != nil {
		return err
	}
	var envs []environment.Runs
	dir := app.RunsPath(cfg)
	if _, err := os.Stat(dir); err == nil {
		root, err := runner.Open(dir, runner.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, root.Close()) }()
		envs = append(envs, environment.Runs{Root: root})
	}
	boxes, err := environment.OpenSandboxes(cfg, environment.NewPolicy(cfg), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, boxes.Close()) }()
	envs = append(envs, boxes.Running(ctx, notes)...)
	if len(envs) == 0 {
		return errNoRuns
	}
	return f(envs)
}

var errNoRuns = errors.New("no agent was ever started with this configuration")

// listRuns returns the runs of agents in all environments.
func listRuns(ctx context.Context, envs []environment.Runs, notes io.Writer) (all []listedRun, err error) {
	for _, at := range envs {
		infos, err := at.Root.List(ctx)
		switch {
		case err != nil && at.Name == "":
			return nil, err
		case err != nil:
			fmt.Fprintf(notes, "ductor: the sandbox %s cannot be reached: %v\n", at.Name, err)
		}
		for _, info := range infos {
			all = append(all, listedRun{info, at})
		}
	}
	return all, nil
}

// findRun returns the run with the given ID. The beginning of an ID is sufficient if only one run's ID begins with it.
func findRun(ctx context.Context, envs []environment.Runs, begin string, notes io.Writer) (listedRun, error) {
	all, err := listRuns(ctx, envs, notes)
	if err != nil {
		return listedRun{}, err
	}
	var found []listedRun
	for _, run := range all {
		if run.ID == begin {
			return run, nil
		}
		if strings.HasPrefix(run.ID, begin) {
			found = append(found, run)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return listedRun{}, fmt.Errorf("there is no agent with the ID %s; `ductor ps` lists them", begin)
	default:
		return listedRun{}, fmt.Errorf("%d runs begin with %s; type more of the ID", len(found), begin)
	}
}

func killCommand(env config.Environment) *cobra.Command {
	var from *source
	var all bool
	cmd := &cobra.Command{
		Use:   "kill ID",
		Short: "Stop an agent and everything it started (works while ductor is stopped)",
		Long: "Stop an agent and everything it started. It works while ductor is stopped, too. With --all, stop " +
			"all agents.\n" +
			"If `ductor doctor` reports no control groups, processes that detached themselves from their agent are " +
			"not found.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return errors.New("give one ID from `ductor ps`, or --all")
			}
			return withRuns(cmd.Context(), from, cmd.ErrOrStderr(), func(envs []environment.Runs) error {
				if !all {
					return killNamed(cmd, envs, args[0])
				}
				return killAll(cmd, envs)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "stop all agents")
	from = sourceOf(cmd, env)
	return cmd
}

func killNamed(cmd *cobra.Command, envs []environment.Runs, begin string) error {
	run, err := findRun(cmd.Context(), envs, begin, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return killRun(cmd, run)
}

func killRun(cmd *cobra.Command, run listedRun) error {
	if err := run.at.Root.Kill(cmd.Context(), run.ID); err != nil {
		return err
	}
	where := ""
	if run.at.Name != "" {
		where = " in the sandbox " + run.at.Name
	}
	fmt.Fprintf(cmd.OutOrStdout(), "ended %s (%s, pid %d%s)\n", sub.PlainLine(run.ID), sub.PlainLine(agentOf(run.Info)),
		run.PID, where)
	return nil
}

func killAll(cmd *cobra.Command, envs []environment.Runs) error {
	runs, err := listRuns(cmd.Context(), envs, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	var errs []error
	for _, run := range runs {
		if run.Alive || run.Processes > 0 || run.Problem != "" {
			errs = append(errs, killRun(cmd, run))
		}
	}
	return errors.Join(errs...)
}
