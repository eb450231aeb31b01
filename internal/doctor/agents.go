package doctor

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/config"
)

func (d *doctor) checkHostAgents(ctx context.Context, cfg config.Config, with func(func([]cli.Provider)) error) {
	if !environment.NewPolicy(cfg).OnHost() {
		d.ok(agents, "all run in sandboxes; agents on this machine are not checked")
		return
	}
	named, problems := app.RoleFiles(cfg)
	for _, problem := range problems {
		d.fail(roles, problem, "correct that file; docs/sessions.md explains the format")
	}
	cfg.ModelNames = append(slices.Clone(cfg.ModelNames), named...)
	usable := 0
	err := with(func(providers []cli.Provider) {
		usable = d.checkAgents(ctx, cfg, providers, "")
		if usable > 0 && len(cfg.ModelNames) > 0 {
			d.checkModels(ctx, cfg, providers)
		}
	})
	if err != nil {
		d.fail(agents, err.Error(), "correct what it names in [agents]")
		return
	}
	if usable == 0 {
		d.fail(agents, "none can be used", "log in to an installed one, or install one")
	}
	d.checkAccounts(ctx, cfg)
}

func (d *doctor) checkAccounts(ctx context.Context, cfg config.Config) {
	if !slices.ContainsFunc(cfg.Agents.Names(), func(name string) bool { return len(cfg.Agents.Accounts(name)) > 0 }) {
		return
	}
	states, err := app.ProbeAccounts(ctx, cfg)
	if err != nil {
		d.fail(agents, err.Error(), "correct what it names in [agents]")
	}
	for _, s := range states {
		what := agent.named(s.Account.Of(s.Agent))
		if s.Usable() {
			d.ok(what, s.String())
			continue
		}
		d.warn(what, s.String(), remedy(s.Auth)+", or remove the account; docs/agents.md says how")
	}
}

// checkServers checks that the configured MCP servers answer on this machine.
func (d *doctor) checkServers(ctx context.Context, cfg config.Config) {
	states, err := app.ProbeServers(ctx, cfg)
	if err != nil {
		d.fail(server, err.Error(), "correct what it names")
	}
	for _, s := range states {
		if s.Problem != "" {
			d.warn(server.named(s.Name), s.Problem,
				"correct [mcp.servers."+s.Name+"]; docs/tools.md explains how. Agents start without it")
			continue
		}
		d.ok(server.named(s.Name), "answers")
	}
}

// checkModels checks that each model in the configuration exists, according to its agent.
func (d *doctor) checkModels(ctx context.Context, cfg config.Config, providers []cli.Provider) {
	entries := make([]cli.MenuEntry, len(providers))
	var looks sync.WaitGroup
	for i, p := range providers {
		looks.Go(func() {
			entries[i] = cli.MenuEntry{Agent: p.Agent(), Auth: p.Auth(ctx)}
			if entries[i].Auth.State == cli.Authenticated {
				entries[i].Models, entries[i].Err = p.Models(ctx)
			}
		})
	}
	looks.Wait()
	doubts := app.DoubtsOfModels(cfg, entries)
	for _, doubt := range doubts {
		d.warn(models, doubt, "name a model that /model lists")
	}
	if len(doubts) == 0 {
		d.ok(models, fmt.Sprintf("%d names of the configuration", len(cfg.ModelNames)))
	}
}

func remedy(auth cli.Auth) string {
	switch {
	case auth.Problem != nil:
		return "run the check again"
	case auth.State == cli.Installed:
		return "log in to it"
	case auth.Fix == "":
		return "put it into the image and log in to it"
	}
	return "install it and log in to it"
}

// checkAgents checks each agent in one environment, and returns the number of agents that can be used. The names of the
// checks begin with prefix, which is empty for this machine.
func (d *doctor) checkAgents(ctx context.Context, cfg config.Config, providers []cli.Provider,
	prefix check) (usable int) {
	states := make([]cli.AgentState, len(providers))
	var looks sync.WaitGroup
	for i, p := range providers { // concurrently, because each check starts a program
		looks.Go(func() { states[i] = app.ProbeAgent(ctx, cfg, p) })
	}
	looks.Wait()
	for _, problem := range app.ProblemsOfTools(cfg, providers) {
		d.fail(prefix+tools, problem, "correct that list; docs/permissions.md lists the values of tools and "+
			"denied_tools")
	}
	var missing []string
	for i, p := range providers {
		state, what := states[i], prefix+agent.named(string(p.Agent()))
		if state.Auth.State == cli.NotFound && !state.Auth.Broken() && !isConfigured(cfg, p.Agent()) {
			missing = append(missing, p.Agent().Name())
			continue
		}
		if prefix != "" && state.Auth.State == cli.NotFound {
			state.Auth.Fix = ""
		}
		if state.Auth.Broken() {
			d.warn(what, state.String(), "install what it needs to run, such as node")
			continue
		}
		if !state.Usable() {
			if prefix == "" && state.Auth.State == cli.Installed && state.Auth.Problem == nil {
				d.loggedOut = append(d.loggedOut, state.Agent)
			}
			d.warn(what, state.String(), remedy(state.Auth)+", or disable it; docs/agents.md explains how")
			continue
		}
		usable++
		d.ok(what, state.String())
		if limited, ok := p.(cli.Limited); ok {
			if why := limited.Cannot(state.Mode, cli.PermissionMode(cfg.Permissions.Mode)); why != "" {
				d.warn(what, fmt.Sprintf("with permissions.mode %q: %s", cfg.Permissions.Mode, why),
					"choose another permissions.mode; docs/permissions.md lists what each agent can do")
			}
		}
	}
	if len(missing) > 0 {
		d.ok(prefix+agents, "not installed: "+strings.Join(missing, ", ")+"; docs/agents.md")
	}
	return usable
}

// isConfigured reports whether an agent is an ACP agent of the configuration, is the default agent, or has changed
// settings. ductor does not warn about any other agent that is missing, because most users install only one agent.
func isConfigured(cfg config.Config, name cli.Agent) bool {
	own, known := cfg.Agents.Own()[name]
	return !known || name == cfg.Agents.Default || !reflect.DeepEqual(own, config.Default().Agents.Own()[name])
}
