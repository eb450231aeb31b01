package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ductor/cli"
	"ductor/cli/host"
	"ductor/cmd/ductor/sub"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/runner"
)

func psCommand(env config.Environment) *cobra.Command {
	var from *source
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List running agents (works while ductor is stopped)",
		Long: "List running agents. It works while ductor is stopped, too. With --output ID, print the output of " +
			"an agent\n" +
			"since the start of its current turn, until it ends or you press Ctrl-C. The agent doesn't notice.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" {
				return printOutput(cmd, from, output, all)
			}
			err := withRuns(cmd.Context(), from, cmd.ErrOrStderr(), func(envs []environment.Runs) error {
				runs, err := listRuns(cmd.Context(), envs, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				return writeRuns(cmd.OutOrStdout(), runs, time.Now())
			})
			if errors.Is(err, errNoRuns) {
				return writeRuns(cmd.OutOrStdout(), nil, time.Now())
			}
			return err
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "follow the output of the agent with this ID")
	cmd.Flags().BoolVar(&all, "all", false, "with --output: start at the beginning, as far as it is stored")
	from = sourceOf(cmd, env)
	return cmd
}

// writeRuns writes a table of runs, the oldest first.
func writeRuns(out io.Writer, runs []listedRun, now time.Time) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(out, "no agent runs")
		return err
	}
	slices.SortFunc(runs, func(a, b listedRun) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tCHAT\tAGENT\tWHERE\tPID\tAGE\tMEMORY\tSTATE")
	for _, run := range runs {
		i, age := run.Info, "?"
		if !i.Started.IsZero() {
			age = now.Sub(i.Started).Round(time.Second).String()
		}
		// The agent can change the ID, the labels and the state of its run, so PlainLine removes control characters.
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", sub.PlainLine(i.ID),
			sub.PlainLine(cmp.Or(string(purposeOf(i).Conversation), "-")), sub.PlainLine(agentOf(i)),
			cmp.Or(run.at.Name, "host"), i.PID, age, memory(i.Memory), sub.PlainLine(stateOf(run)))
	}
	return w.Flush()
}

// purposeOf returns the purpose of a run from its labels.
func purposeOf(i runner.Info) cli.Purpose { return host.PurposeOf(i.Labels) }

// agentOf returns the name of the agent in a run. If the labels do not contain the name, it returns the name of the
// program.
func agentOf(i runner.Info) string {
	p := purposeOf(i)
	switch {
	case p.Agent != "" && p.Mode != "":
		return fmt.Sprintf("%s %s", p.Agent, p.Mode)
	case p.Agent != "":
		return string(p.Agent) + " probe"
	case len(i.Command) > 0:
		return i.Command[0]
	}
	return "?"
}

func memory(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
}

// stateOf describes the state of a run: running with or without a ductor process that reads its output, or how it
// ended.
func stateOf(run listedRun) string {
	i := run.Info
	switch {
	case i.Problem != "":
		return "cannot be resumed: " + strings.TrimSpace(i.Problem)
	case i.Alive && i.Attached && run.at.Name != "": // omit the PID, because it would be a PID in the container
		return "attached by ductor"
	case i.Alive && i.Attached:
		return fmt.Sprintf("attached by ductor (pid %d)", i.AttachedBy)
	case i.Alive:
		return "detached; continues for " + i.Limits.OrphanAfter.String() + " without ductor"
	case i.Status != nil && i.Status.Known:
		return endOf(i.Status.Exit) + "; its output is kept for ductor"
	default:
		return "ended, for an unknown reason"
	}
}

func endOf(e runner.Exit) string {
	by := ""
	if e.By != "" {
		by = " (" + e.By + ")"
	}
	if e.Signal {
		return fmt.Sprintf("ended by signal %d%s", -e.Code, by)
	}
	return fmt.Sprintf("ended with exit code %d%s", e.Code, by)
}
