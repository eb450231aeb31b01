package naming

import (
	"slices"
	"strings"
	"unicode"

	"ductor/cli"
)

// The functions in this file choose models of an agent that is usable although it lists no models, for example because
// its list failed to load. Such an agent may accept any ID.

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

// chooseUnseen parses words such as "opus high" or "default" that follow the name of an agent without a list of models.
// It always returns a Problem, because it cannot check whether the agent has the model. If the words are well-formed,
// the Choice is valid and the kind of the Problem is NotListed.
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

// unseen handles words that name no listed model. The words may name a model of an agent without a list of models.
// unseen guesses that agent from the model's name, or else takes the current agent. If the words look like a misspelled
// listed model, unseen only adds the guessed choice to problem.Meant.
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
