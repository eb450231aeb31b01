package menu

import (
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
)

// Choosing a model by name: "/model opus", "/model codex", "/model claude/opus high".

// chooseModel finds what args name. problem is a sentence for the chat, empty when it was found.
func chooseModel(p lang.Printer, args string, entries []cli.MenuEntry, current cli.Agent) (c choice, problem string) {
	words := strings.Fields(args)
	if len(words) == 0 {
		return choice{}, noSuchModel(p, "", entries)
	}
	pool := entries
	if e, rest, ok := agentOf(words, entries); ok {
		if !usable(e) {
			return choice{}, p.Text("menu.unusable", e.Agent, unusableBecause(p, e))
		}
		pool, words = []cli.MenuEntry{e}, rest
	}
	var model cli.Model
	switch {
	case len(pool) == 1 && (len(words) == 0 || strings.EqualFold(words[0], "default")):
		model = defaultModel(pool[0])
	default:
		if model, problem = modelNamed(p, words[0], pool, current); problem != "" {
			return choice{}, problem
		}
	}
	c = choice{agent: model.Agent, model: model.ID}
	if len(words) > 1 {
		c.effort, problem = effortNamed(p, words[1:], model)
	}
	return c, problem
}

// agentOf reads an agent off the first word, "claude" or "claude/opus", and gives the words after it.
func agentOf(words []string, entries []cli.MenuEntry) (cli.MenuEntry, []string, bool) {
	name, model, slash := strings.Cut(words[0], "/")
	for _, e := range entries {
		if strings.EqualFold(string(e.Agent), name) {
			rest := slices.Clone(words[1:])
			if slash && model != "" {
				rest = append([]string{model}, rest...)
			}
			return e, rest, true
		}
	}
	return cli.MenuEntry{}, nil, false
}

// defaultModel stands for the agent's own choice: no id, with the efforts of the model that would be taken.
func defaultModel(e cli.MenuEntry) cli.Model {
	m := cli.Model{Agent: e.Agent}
	for _, o := range e.Models {
		if o.Default {
			m.Efforts, m.DefaultEffort = o.Efforts, o.DefaultEffort
		}
	}
	return m
}

// modelNamed finds a model by its id or name, or by a part of them that no other has. The agent in use
// goes before the others.
func modelNamed(p lang.Printer, name string, pool []cli.MenuEntry, current cli.Agent) (cli.Model, string) {
	name = strings.ToLower(name)
	same := func(s string) bool { return s == name }
	part := func(s string) bool { return strings.Contains(s, name) }
	var here, all []cli.MenuEntry
	for _, e := range pool {
		if !usable(e) {
			continue
		}
		all = append(all, e)
		if e.Agent == current {
			here = append(here, e)
		}
	}
	for _, try := range []struct {
		in  []cli.MenuEntry
		fit func(string) bool
	}{{here, same}, {all, same}, {here, part}, {all, part}} {
		switch found := modelsWith(try.in, try.fit); len(found) {
		case 0:
		case 1:
			return found[0], ""
		default:
			return cli.Model{}, p.Text("menu.ambiguous-model", modelIDs(found))
		}
	}
	return cli.Model{}, noSuchModel(p, name, all)
}

func modelsWith(entries []cli.MenuEntry, fit func(string) bool) []cli.Model {
	var found []cli.Model
	for _, e := range entries {
		for _, m := range e.Models {
			if fit(strings.ToLower(string(m.ID))) || fit(strings.ToLower(m.Name)) {
				m.Agent = e.Agent
				found = append(found, m)
			}
		}
	}
	return found
}

func effortNamed(p lang.Printer, words []string, m cli.Model) (cli.Effort, string) {
	if len(words) > 1 {
		return "", p.Text("menu.too-many-words")
	}
	if strings.EqualFold(words[0], "default") {
		return "", ""
	}
	for _, e := range m.Efforts {
		if strings.EqualFold(string(e), words[0]) {
			return e, ""
		}
	}
	if len(m.Efforts) == 0 {
		return "", p.Text("menu.no-efforts", modelOrDefault(p, m))
	}
	var names []string
	for _, e := range m.Efforts {
		names = append(names, string(e))
	}
	return "", p.Text("menu.no-such-effort", modelOrDefault(p, m), strings.Join(names, ", "))
}

func modelOrDefault(p lang.Printer, m cli.Model) string {
	if m.ID == "" {
		return p.Text("menu.default-model-of", m.Agent)
	}
	return modelName(m)
}

func noSuchModel(p lang.Printer, name string, entries []cli.MenuEntry) string {
	var all []cli.Model
	for _, e := range entries {
		if usable(e) {
			for _, m := range e.Models {
				m.Agent = e.Agent
				all = append(all, m)
			}
		}
	}
	if len(all) == 0 {
		return p.Text("menu.no-agent-for-model")
	}
	return p.Text("menu.no-such-model", render.Cut(name, 60), modelIDs(all))
}

func modelIDs(models []cli.Model) string {
	var names []string
	for _, m := range models[:min(len(models), 30)] {
		names = append(names, string(m.Agent)+"/"+string(m.ID))
	}
	if len(models) > 30 {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
