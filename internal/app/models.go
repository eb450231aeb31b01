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

// RoleFiles lists the models that the files of roles name, and says which of these files are no role or name an agent that ductor does not
// know.
func RoleFiles(cfg config.Config) (models []config.ModelName, problems []string) {
	files, wrong := roles.Files(cfg.RolesDir())
	for _, err := range wrong {
		problems = append(problems, "roles/"+err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, r := "roles/"+name+".md", files[name]
		switch known := cfg.Agents.Names(); {
		case r.Agent != "" && !slices.Contains(known, string(r.Agent)):
			problems = append(problems, fmt.Sprintf("%s: there is no agent %q; the agents are %s", file, r.Agent, strings.Join(known, ", ")))
		case r.Model != "":
			models = append(models, config.ModelName{Key: file, Name: strings.Trim(string(r.Agent)+"/"+string(r.Model), "/")})
		}
	}
	return models, problems
}

// DoubtsOfModels says which models that a configuration names are none of those that its agents list. Of an agent that cannot be
// used nothing is said: that is a finding of its own. An agent may accept more models than it lists, so these are doubts.
func DoubtsOfModels(cfg config.Config, entries []cli.MenuEntry) (doubts []string) {
	names := naming.Names{Entries: entries}
	for _, m := range cfg.ModelNames {
		_, problem := names.Find(m.Name)
		if problem == nil {
			continue
		}
		text := ""
		switch problem.Kind {
		case naming.Unknown:
			text = fmt.Sprintf("no agent lists a model %q", problem.Name)
			if problem.Near != "" {
				text += fmt.Sprintf("; did you mean %q?", problem.Near)
			}
		case naming.Elsewhere:
			text = fmt.Sprintf("%s runs %q, and cannot be used here", problem.Agent, problem.Name)
		case naming.Ambiguous:
			text = fmt.Sprintf("several models have the name %q; write one in full, with its agent", problem.Name)
		case naming.NoEfforts:
			text = fmt.Sprintf("%s/%s has no efforts to choose from", problem.Model.Agent, problem.Model.ID)
		case naming.UnknownEffort:
			text = fmt.Sprintf("%s/%s knows these efforts: %v", problem.Model.Agent, problem.Model.ID, problem.Model.Efforts)
		case naming.TooManyWords:
			text = "name an agent, a model and an effort, and nothing more"
		default:
			continue
		}
		where := m.Key
		if m.Line > 0 { // else it is of another file, which Key names
			where = fmt.Sprintf("%s:%d: %s", filepath.Base(cfg.File), m.Line, m.Key)
		}
		doubts = append(doubts, where+": "+text)
	}
	return doubts
}

// checkModels logs doubts about the models of the configuration. It asks the agents only if there is something to doubt.
func (a *App) checkModels(ctx context.Context) {
	if len(a.cfg.ModelNames) == 0 || !a.envs.Sandboxes.Policy().OnHost() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, agentsPatience)
	defer cancel()
	entries := a.service.Menu(ctx, "")
	if ctx.Err() != nil {
		return
	}
	for _, doubt := range DoubtsOfModels(a.cfg, entries) {
		a.Log.Warn("a model of the configuration", "doubt", doubt)
	}
}

// knowing is a gateway whose menu has what the configuration says of models, where their agents do not say it.
type knowing struct {
	orchestrator.Gateway
	models func() map[string]naming.Alias // now
}

// Menu implements orchestrator.Gateway.
func (k knowing) Menu(ctx context.Context, in cli.Sandbox, only ...cli.Agent) []cli.MenuEntry {
	entries, models := slices.Clone(k.Gateway.Menu(ctx, in, only...)), k.models()
	for i := range entries {
		e := &entries[i]
		e.Models = slices.Clone(e.Models) // others read them too
		for j := range e.Models {
			for _, said := range models {
				if means(said.Use, e.Models[j], e.Agent) {
					learn(&e.Models[j], said)
				}
			}
		}
	}
	return entries
}

// means says whether the use of an alias is a model of an agent.
func means(use string, m cli.Model, agent cli.Agent) bool {
	words := strings.Fields(strings.Replace(use, "/", " ", 1))
	if len(words) == 0 || !strings.EqualFold(words[0], string(agent)) {
		return false
	}
	return len(words) > 1 && (strings.EqualFold(words[1], string(m.ID)) || strings.EqualFold(words[1], m.Name)) || len(words) == 1 && m.Default
}

func learn(m *cli.Model, said naming.Alias) {
	if m.Context == 0 {
		m.Context = said.Context
	}
	if m.Price == (cli.Price{}) {
		m.Price = said.Price
	}
}
