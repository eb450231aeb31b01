package app

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/naming"
	"ductor/internal/config"
	"ductor/internal/roles"
	"ductor/orchestrator"
)

// RoleFiles returns the names of models in role files. It also describes the files that cannot be parsed, or that
// contain an unknown agent or MCP server.
func RoleFiles(cfg config.Config) (models []config.ModelName, problems []string) {
	files, wrong := roles.Files(cfg.RolesDir())
	for _, err := range wrong {
		problems = append(problems, "roles/"+err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, r := "roles/"+name+".md", files[name]
		for _, server := range r.Bounds.MCP {
			if err := cfg.CheckServer(server); err != nil {
				problems = append(problems, file+": "+err.Error())
			}
		}
		switch known := cfg.Agents.Names(); {
		case r.Agent != "" && !slices.Contains(known, string(r.Agent)):
			problems = append(problems, fmt.Sprintf("%s: no agent is called %q; use one of %s", file, r.Agent,
				strings.Join(known, ", ")))
		case r.Model != "":
			models = append(models, config.ModelName{Key: file,
				Name: strings.Trim(string(r.Agent)+"/"+string(r.Model), "/")})
		}
	}
	return models, problems
}

// DoubtsOfModels returns warnings about configured models that no agent lists. They are warnings and not errors,
// because an agent may accept more models than it lists. If an agent cannot be used, DoubtsOfModels skips its models,
// because another check reports the agent.
func DoubtsOfModels(cfg config.Config, entries []cli.MenuEntry) (doubts []string) {
	names := naming.Names{Entries: entries}
	for _, m := range cfg.ModelNames {
		choice, problem := names.Find(m.Name)
		switch {
		case problem == nil && names.Lists(choice):
			continue
		case problem == nil:
			problem = &naming.Problem{Kind: naming.Unknown, Name: string(choice.Model)}
		}
		text := ""
		switch problem.Kind {
		case naming.Unknown:
			text = fmt.Sprintf("no agent lists a model %q", problem.Name)
			if problem.Near != "" {
				text += fmt.Sprintf("; did you mean %q?", problem.Near)
			}
		case naming.Elsewhere:
			text = fmt.Sprintf("%s offers %q but cannot be used here", problem.Agent, problem.Name)
		case naming.Ambiguous:
			text = fmt.Sprintf("several models have the name %q; write one in full, with its agent", problem.Name)
		case naming.NoEfforts:
			text = fmt.Sprintf("%s/%s has no efforts to choose from", problem.Model.Agent, problem.Model.ID)
		case naming.UnknownEffort:
			text = fmt.Sprintf("%s/%s knows these efforts: %v", problem.Model.Agent, problem.Model.ID,
				problem.Model.Efforts)
		case naming.TooManyWords:
			text = "write only an agent, a model and an effort"
		default:
			continue
		}
		where := m.Key
		if m.Line > 0 { // the name is in the configuration file, and not in a role file
			where = fmt.Sprintf("%s:%d: %s", filepath.Base(cfg.File), m.Line, m.Key)
		}
		doubts = append(doubts, where+": "+text)
	}
	return doubts
}

// checkModels logs the warnings of DoubtsOfModels. If the configuration contains no name of a model, it does not ask
// the agents for their models.
func (a *App) checkModels(ctx context.Context) {
	if len(a.cfg.ModelNames) == 0 || !a.envs.Sandboxes.Policy().OnHost() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	entries := a.service.Menu(ctx, "", nil)
	if ctx.Err() != nil {
		return
	}
	for _, doubt := range DoubtsOfModels(a.cfg, entries) {
		a.Log.Warn("a model of the configuration", "doubt", doubt)
	}
}

// configuredModels is a Gateway whose menu contains more facts about models. If an agent does not report a fact,
// configuredModels adds it from the configuration.
type configuredModels struct {
	orchestrator.Gateway
	models func() map[string]naming.Alias // returns the current aliases
}

// Menu implements orchestrator.Gateway.
func (k configuredModels) Menu(ctx context.Context, in cli.Sandbox, of cli.Accounts,
	only ...cli.Agent) []cli.MenuEntry {
	entries, models := slices.Clone(k.Gateway.Menu(ctx, in, of, only...)), k.models()
	for i := range entries {
		e := &entries[i]
		e.Models = slices.Clone(e.Models) // other callers share the slice
		for j := range e.Models {
			for _, alias := range models {
				if aliasMatches(alias.Use, e.Models[j], e.Agent) {
					addConfigured(&e.Models[j], alias)
				}
			}
		}
	}
	return entries
}

// aliasMatches reports whether an alias stands for the model m of an agent.
func aliasMatches(use string, m cli.Model, agent cli.Agent) bool {
	words := strings.Fields(strings.Replace(use, "/", " ", 1))
	if len(words) == 0 || !strings.EqualFold(words[0], string(agent)) {
		return false
	}
	return len(words) > 1 && (strings.EqualFold(words[1], string(m.ID)) || strings.EqualFold(words[1], m.Name)) ||
		len(words) == 1 && m.Default
}

func addConfigured(m *cli.Model, said naming.Alias) {
	if m.Context == 0 {
		m.Context = said.Context
	}
	if m.Price == (cli.Price{}) {
		m.Price = said.Price
	}
}
