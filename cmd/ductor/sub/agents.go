package sub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/nearest"
)

// Agents returns the command that lists all agents. A subcommand adds agents to the configuration.
func Agents(env config.Environment, from Source) *cobra.Command {
	var wait time.Duration
	cmd := withConfig(orDefault(from.forParts("storage", "agents")), &cobra.Command{
		Use: "agents", Short: "List agents: installed, logged in, in use",
		Long: "List the agents in the configuration and those that ductor knows. Each installed agent is started " +
			"and asked " +
			"whether it is logged in. That costs no tokens.",
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, cfg config.Config, _ []string) error { return listAgents(cmd, cfg, wait) })
	cmd.AddCommand(withConfig(from, &cobra.Command{
		Use: "add NAME...", Short: "Add installed agents to the configuration",
		Args: cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, cfg config.Config, args []string) error {
		return addAgents(cmd, env, cfg, args, wait)
	}))
	cmd.PersistentFlags().DurationVar(&wait, "wait", 30*time.Second, "wait this long for an agent to answer")
	return cmd
}

// orDefault returns a Source that loads the default configuration if the file does not exist yet.
func orDefault(from Source) Source {
	return func(cmd *cobra.Command) func(...string) (config.Config, error) {
		load := from(cmd)
		return func(parts ...string) (config.Config, error) {
			cfg, err := load(parts...)
			if errors.Is(err, fs.ErrNotExist) {
				cmd.PrintErrln(err.Error())
				return config.Default(), nil
			}
			return cfg, err
		}
	}
}

func listAgents(cmd *cobra.Command, cfg config.Config, wait time.Duration) error {
	all, rows := cfg, map[string]agentRow{}
	for _, e := range acp.Catalogue() {
		rows[e.ID] = agentRow{missing, "no", "not installed. " + e.HowToInstall("")}
	}
	for _, name := range cfg.Agents.Names() {
		rows[name] = agentRow{disabled, "no, disabled", ""}
	}
	for _, e := range cfg.Agents.Addable(exec.LookPath) {
		all.Agents = all.Agents.With(e)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	states, err := lookAtAgents(ctx, all)
	if err != nil {
		return err
	}
	for _, s := range states {
		row, name := agentRow{inUse, "yes", cli.OneLine(s.String(), maxState)}, string(s.Agent)
		if s.Agent == cfg.Agents.Default {
			row.group, row.used = first, "first"
		} else if !cfg.Agents.Enabled(name) {
			row.group, row.used = addable, "no; to use it: ductor agents add "+name
		}
		rows[name] = row
	}
	accounts, err := app.ProbeAccounts(ctx, cfg)
	for _, s := range accounts {
		rows[s.Account.Of(s.Agent)] = agentRow{inUse, "in /account", cli.OneLine(s.String(), maxState)}
	}
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AGENT\tUSED\tSTATE")
	for _, name := range slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Or(cmp.Compare(rows[a].group, rows[b].group), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, rows[name].used, rows[name].state)
	}
	return w.Flush()
}

type agentRow struct {
	group       agentGroup
	used, state string
}

// agentGroup divides the list of agents. Groups are listed in the order of the constants.
type agentGroup int

const (
	first    agentGroup = iota // contains only the default agent
	inUse                      // configured agents, and the accounts in /account
	addable                    // installed, but not configured
	disabled                   // configured, but disabled
	missing                    // not installed
)

// maxState is the maximum length of the text that describes an agent's state, in bytes.
const maxState = 300

// addAgents adds agents from ductor's catalogue to the configuration. It adds an agent only if the agent's program is
// installed and supports the Agent Client Protocol. The error names all agents that were not added.
func addAgents(cmd *cobra.Command, env config.Environment, cfg config.Config, names []string,
	wait time.Duration) (failed error) {
	fail := func(format string, args ...any) { failed = errors.Join(failed, fmt.Errorf(format, args...)) }
	asked := cfg
	asked.Agents = config.Agents{Settings: cfg.Agents.Settings, Timing: cfg.Agents.Timing}
	for _, name := range names {
		e, known := acp.FindEntry(name)
		switch _, err := exec.LookPath(e.Command); {
		case slices.Contains(cfg.Agents.Names(), name) || known && cfg.Agents.Has(e):
			fmt.Fprintf(cmd.OutOrStdout(), "%s is in %s already; ductor agents shows what is missing\n", name, cfg.File)
		case !known:
			fail("the catalogue has no agent %q%s", name, suggestAgent(name))
		case err != nil:
			fail("%s is not installed: there is no program %s. %s", e.Name, e.Command, e.HowToInstall(""))
		default:
			asked.Agents = asked.Agents.With(e)
		}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	states, err := lookAtAgents(ctx, asked)
	for _, s := range states {
		state := strings.TrimSuffix(cli.OneLine(s.String(), maxState), ".")
		if s.Auth.Problem != nil {
			fail("%s was not added. %s. Another program may have its name", s.Agent, state)
		} else if err := config.AddAgent(cfg.File, string(s.Agent), env); err != nil {
			fail("%w", err)
		} else {
			fmt.Fprintf(cmd.OutOrStdout(), "%s is added to %s: %s\nIf ductor runs, send it /reload, and pick %[1]s in "+
				"/model.\n", s.Agent, cfg.File, state)
		}
	}
	return errors.Join(failed, err)
}

func suggestAgent(name string) string {
	var ids []string
	for _, e := range acp.Catalogue() {
		ids = append(ids, e.ID)
	}
	if near, similar := nearest.Of(name, ids); similar {
		return "; did you mean " + near + "?"
	}
	return "; docs/agents.md says how to add any other agent"
}
