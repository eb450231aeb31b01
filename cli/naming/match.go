package naming

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"ductor/cli"
	"ductor/internal/nearest"
)

// This file compares names with the models that agents list.

// findModel finds a model of the agents in pool. name is the model's ID, its name, or a unique part of one of these.
//
// An agent may accept a model that it does not list. If no listed model fits, findModel therefore uses name as an ID,
// but only if the user wrote AGENT/MODEL (withAgent), or if name contains a digit.
func (n Names) findModel(name string, pool []cli.MenuEntry, withAgent bool) (cli.Model, *Problem) {
	lower := strings.ToLower(name)
	same := func(s string) bool { return strings.ToLower(s) == lower }
	part := func(s string) bool { return strings.Contains(strings.ToLower(s), lower) }
	var here, all []cli.MenuEntry
	anyLoading, currentLoading := false, false
	for _, e := range pool {
		anyLoading = anyLoading || IsLoading(e)
		currentLoading = currentLoading || IsLoading(e) && e.Agent == n.Current
		if !Usable(e) {
			continue
		}
		all = append(all, e)
		if e.Agent == n.Current {
			here = append(here, e)
		}
	}
	for i, try := range []struct {
		in    []cli.MenuEntry
		fit   func(string) bool
		exact string
	}{{here, same, name}, {all, same, name}, {here, part, ""}, {all, part, ""}} {
		if currentLoading || anyLoading && i == 3 {
			return cli.Model{}, &Problem{Kind: Loading, Name: name}
		}
		switch found := modelsWith(try.in, try.fit, try.exact); len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			p := &Problem{Kind: Ambiguous, Name: name, Models: found}
			for _, m := range found {
				p.Meant = append(p.Meant, Choice{Agent: m.Agent, Model: m.ID})
			}
			return cli.Model{}, p
		}
	}
	unlisted, known := unlisted(name, pool)
	problem := n.unknown(name, all)
	switch {
	case !known || !withAgent && digits(name) == "":
		return cli.Model{}, problem
	case problem.Near != "" && digits(problem.Near) == digits(name): // name is probably a mistyped form of problem.Near
		problem.Meant = append(problem.Meant, Choice{Agent: unlisted.Agent, Model: unlisted.ID})
		return cli.Model{}, problem
	}
	return unlisted, nil
}

// Lists reports whether the agent lists the model that the choice contains. An agent may list an exact ID such as
// "claude-opus-4-8" under a short ID such as "opus".
func (n Names) Lists(c Choice) bool {
	return c.Model == "" || slices.ContainsFunc(n.Entries, func(e cli.MenuEntry) bool {
		same := func(s string) bool { return strings.EqualFold(s, string(c.Model)) }
		return e.Agent == c.Agent && len(modelsWith([]cli.MenuEntry{e}, same, string(c.Model))) > 0
	})
}

// modelsWith returns the models with an ID or name that match accepts. A listed ID such as "opus" can be short for an
// exact ID, which is in cli.Model.Resolved. If exactID is not empty, modelsWith also returns the models with this exact
// ID.
func modelsWith(entries []cli.MenuEntry, match func(string) bool, exactID string) []cli.Model {
	var found []cli.Model
	for _, e := range entries {
		for _, m := range e.Models {
			m.Agent = e.Agent
			full, _, _ := strings.Cut(string(m.Resolved), "[")
			switch {
			case match(string(m.ID)) || match(m.Name):
			case exactID != "" && (strings.EqualFold(string(m.Resolved), exactID) || strings.EqualFold(full, exactID)):
				m.ID, m.Name, m.Default = cli.ModelID(exactID), "", false
			default:
				continue
			}
			known := func(o cli.Model) bool {
				return o.Agent == m.Agent && strings.EqualFold(string(o.ID), string(m.ID))
			}
			if !slices.ContainsFunc(found, known) {
				found = append(found, m)
			}
		}
	}
	return found
}

// unlisted returns a model that no agent lists, with the given name as its ID. If pool contains several agents,
// unlisted chooses one with agentFor. The model has the same efforts as the agent's default model.
func unlisted(name string, pool []cli.MenuEntry) (cli.Model, bool) {
	agent := agentFor(name)
	if len(pool) == 1 {
		agent = pool[0].Agent
	}
	i := slices.IndexFunc(pool, func(e cli.MenuEntry) bool { return e.Agent == agent && Usable(e) })
	if i < 0 || !strings.ContainsFunc(name, unicode.IsLetter) ||
		strings.HasPrefix(strings.ToLower(name), string(agent)+"/") {
		return cli.Model{}, false
	}
	m := defaultModel(pool[i])
	m.ID = cli.ModelID(name)
	return m, true
}

// digits returns the digits in a name. They usually distinguish the versions of a model.
func digits(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}

// unknown returns the problem for an unknown name. It suggests a similar name. If the name is probably a model of an
// agent that cannot be used, the kind of the problem is Elsewhere.
func (n Names) unknown(name string, pool []cli.MenuEntry) *Problem {
	p := &Problem{Kind: Unknown, Name: name}
	known := map[string]string{} // known names, each with a text that Find accepts
	for _, e := range pool {
		if Usable(e) {
			known[strings.ToLower(string(e.Agent))] = string(e.Agent)
			for _, m := range modelsWith([]cli.MenuEntry{e}, func(string) bool { return true }, "") {
				p.Models = append(p.Models, m)
				known[strings.ToLower(string(m.ID))] = string(e.Agent) + "/" + string(m.ID)
			}
		}
	}
	if len(p.Models) == 0 {
		p.Kind = NoAgent
		return p
	}
	for name, alias := range n.Aliases {
		known[name] = alias.Use
	}
	if p.Near, _ = nearest.Of(name, slices.Collect(maps.Keys(known))); p.Near != "" {
		if c, problem := (Names{Entries: n.Entries}).Find(known[p.Near]); problem == nil {
			p.Meant = []Choice{c}
		}
	}
	if agent := agentFor(name); p.Near == "" && agent != "" &&
		!slices.ContainsFunc(n.Entries, func(e cli.MenuEntry) bool { return e.Agent == agent && Usable(e) }) {
		p.Kind, p.Agent = Elsewhere, agent
	}
	return p
}

// agentFor guesses the agent from the name of a model. It returns "" if the name gives no hint.
func agentFor(name string) cli.Agent {
	name = strings.ToLower(name)
	for _, family := range []struct {
		agent    cli.Agent
		prefixes []string
	}{
		{"claude", []string{"claude", "opus", "sonnet", "haiku"}},
		{"codex", []string{"gpt-", "codex", "o1", "o3", "o4"}},
		{"gemini", []string{"gemini", "gemma"}},
		{"copilot", []string{"copilot"}},
	} {
		if slices.ContainsFunc(family.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return family.agent
		}
	}
	return ""
}
