package naming

import (
	"slices"
	"strings"
	"unicode"

	"ductor/cli"
)

// An agent can be usable although it lists no models, for example because its list failed to load. This file chooses
// models of such an agent. The agent may accept any ID.

// listsNothing reports whether an agent can be used although it lists no models.
func listsNothing(e cli.MenuEntry) bool {
	return e.Auth.State == cli.Authenticated && !IsLoading(e) && !Usable(e)
}

// withoutList returns the entry of an agent if it lists no models.
func (n Names) withoutList(agent cli.Agent) (cli.MenuEntry, bool) {
	i := slices.IndexFunc(n.Entries, func(e cli.MenuEntry) bool { return e.Agent == agent && listsNothing(e) })
	if i < 0 {
		return cli.MenuEntry{}, false
	}
	return n.Entries[i], true
}

// chooseUnseen parses words such as "opus high" or "default" that follow the name of an agent. The agent lists no
// models, so chooseUnseen always returns a Problem. If the Choice is valid, the kind of the Problem is NotListed.
func chooseUnseen(e cli.MenuEntry, words []string) (Choice, *Problem) {
	c := Choice{Agent: e.Agent}
	switch {
	case len(words) == 0:
	case !IsEffort(words[0]):
		c.Model, words = cli.ModelID(words[0]), words[1:]
	case len(words) > 1 && strings.EqualFold(words[0], "default"):
		words = words[1:]
	}
	switch {
	case len(words) > 1 || len(words) == 1 && !IsEffort(words[0]):
		return Choice{}, &Problem{Kind: TooManyWords}
	case len(words) == 1 && !strings.EqualFold(words[0], "default"):
		c.Effort = cli.Effort(strings.ToLower(words[0]))
	}
	return c, &Problem{Kind: NotListed, Agent: e.Agent, Entry: e}
}

// unseen handles words that name no listed model. They may name a model of an agent that lists no models. unseen
// guesses that agent from the model's name, or else assumes the current agent. If the words look like a misspelled
// listed model, unseen only adds its choice to problem.Meant.
func (n Names) unseen(words []string, problem *Problem) (Choice, *Problem) {
	if problem.Kind != Unknown && problem.Kind != Elsewhere && problem.Kind != NoAgent {
		return Choice{}, problem
	}
	agent := agentFor(words[0])
	if agent == "" {
		agent = n.Current
	}
	e, ok := n.withoutList(agent)
	if !ok || !strings.ContainsFunc(words[0], unicode.IsLetter) {
		return Choice{}, problem
	}
	c, found := chooseUnseen(e, words)
	if problem.Near != "" && found.Chosen() {
		problem.Meant = append(problem.Meant, c)
		return Choice{}, problem
	}
	found.Name = problem.Name
	return c, found
}
