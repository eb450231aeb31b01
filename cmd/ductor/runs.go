package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ductor/internal/supervisor"
)

// withRuns opens the runs of a configuration for a command that works whether ductor runs or not.
func withRuns(config string, f func(*supervisor.Root) error) error {
	cfg, err := loadConfig(config)
	if err != nil {
		return err
	}
	dir := runsPath(cfg)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return errNoRuns
	}
	root, err := supervisor.Open(dir, supervisor.Options{})
	if err != nil {
		return err
	}
	return errors.Join(f(root), root.Close())
}

var errNoRuns = errors.New("no agent was ever started with this configuration")

// findRun is the run whose id begins with what was given.
func findRun(ctx context.Context, root *supervisor.Root, begin string) (supervisor.Info, error) {
	infos, err := root.List(ctx)
	if err != nil {
		return supervisor.Info{}, err
	}
	var found []supervisor.Info
	for _, info := range infos {
		if info.ID == begin {
			return info, nil
		}
		if strings.HasPrefix(info.ID, begin) {
			found = append(found, info)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return supervisor.Info{}, fmt.Errorf("there is no run %s; `ductor ps` lists them", begin)
	default:
		return supervisor.Info{}, fmt.Errorf("%d runs begin with %s; give more of the id", len(found), begin)
	}
}

func killCommand() *cobra.Command {
	var config string
	var all bool
	cmd := &cobra.Command{
		Use:   "kill ID",
		Short: "End an agent and everything it started",
		Long:  "End an agent and everything it started, also when ductor itself is not running. With --all, every agent.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return errors.New("give one ID of `ductor ps`, or --all")
			}
			return withRuns(config, func(root *supervisor.Root) error {
				if !all {
					return killRun(cmd, root, args[0])
				}
				return killAll(cmd, root)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end every agent")
	configFlag(cmd, &config)
	return cmd
}

func killRun(cmd *cobra.Command, root *supervisor.Root, begin string) error {
	info, err := findRun(cmd.Context(), root, begin)
	if err != nil {
		return err
	}
	if err := root.Kill(cmd.Context(), info.ID); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "ended %s (%s, pid %d)\n", info.ID, agentOf(info), info.PID)
	return nil
}

func killAll(cmd *cobra.Command, root *supervisor.Root) error {
	infos, err := root.List(cmd.Context())
	if err != nil {
		return err
	}
	var errs []error
	for _, info := range infos {
		if info.Alive || info.Supervised || info.Problem != "" {
			errs = append(errs, killRun(cmd, root, info.ID))
		}
	}
	return errors.Join(errs...)
}
