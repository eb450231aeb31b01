// Package naming finds the model that a user means by a name. The name can be an alias from the configuration, an
// agent, the ID or the name of a model, or a unique part of the ID or name.
//
// The package does not query agents and sends no messages. If it finds no model, it returns a Problem. The caller
// composes a message to the user from the Problem.
package naming

import (
	"errors"
	"slices"
	"strings"

	"ductor/cli"
)

// Choice is an agent and a model that the user chose. An empty model or effort means the agent's default.
type Choice struct {
	Agent  cli.Agent
	Model  cli.ModelID
	Effort cli.Effort
}

// Alias is a name for a model that the configuration defines.
type Alias struct {
	Use string `toml:"use"` // the name that the alias stands for, such as "claude/haiku" or "codex high"
	// Context and Price describe the model if the agent does not report these values. 0 means unknown.
	Context int64     `toml:"context"` // size of the model's context, in tokens
	Price   cli.Price `toml:",inline"`
}

// Check implements config.checker.
func (a Alias) Check(problem func(key, format string, args ...any)) {
	if a.Context < 0 || a.Price.Input < 0 || a.Price.Output < 0 {
		problem("", "has a context or a price below 0")
	}
	if strings.TrimSpace(a.Use) == "" {
		problem("use", "is empty; name an agent and a model, such as claude/haiku")
	}
}

// Names contains everything that a user can name.
type Names struct {
	Entries []cli.MenuEntry
	Aliases map[string]Alias // by name, in lower case
	Current cli.Agent        // the agent whose models have priority over other agents' models
}

// ProblemKind is the reason why a name is not a valid choice.
type ProblemKind int

// The kinds of problems.
const (
	NoAgent       ProblemKind = iota // no agent can be used
	Unusable                         // the named agent cannot be used; Entry contains the reason
	Unknown                          // no model has this name; Near is a similar name, and Models are all models
	Elsewhere                        // only Agent has this model, and Agent cannot be used
	Ambiguous                        // several models have this name; Models contains them
	TooManyWords                     // something other than a single effort follows the model
	NoEfforts                        // Model has no efforts
	UnknownEffort                    // Model has efforts, but not this one
	Loading                          // models of Agent, or of any agent if Agent is empty, are still loading
	NotListed                        // Agent can be used, but lists no models; Entry contains the reason
)

// Problem explains why a name is not a valid choice. Kind determines which of the other fields are set.
type Problem struct {
	Kind   ProblemKind
	Name   string // the name as the user wrote it
	Near   string // a similar name, or ""
	Agent  cli.Agent
	Entry  cli.MenuEntry
	Model  cli.Model // a model with an empty ID stands for its agent's default
	Models []cli.Model
	Meant  []Choice // choices that the user probably meant
}

// Chosen reports whether the model can be chosen nevertheless: only its effort is wrong, or nobody knows whether the
// agent has the model.
func (p *Problem) Chosen() bool { return p.Kind == NoEfforts || p.Kind == NotListed }

// Find parses a name such as "fast", "codex", "opus", "claude/opus high" or "gemini high". It also accepts an exact ID
// that no agent lists, such as "claude-opus-4-8" or "claude/opusplan", because agents accept more models than they
// list. The Problem is nil if Find succeeds. If Problem.Chosen returns true, the Choice is valid despite the Problem.
func (n Names) Find(name string) (Choice, *Problem) {
	words := n.expand(strings.Fields(name))
	if len(words) == 0 {
		return Choice{}, n.unknown("", n.Entries)
	}
	if n.meansCurrentDefault(words[0]) {
		words = append([]string{string(n.Current)}, words...)
	}
	pool, full := n.Entries, false
	if e, rest, ok := n.agent(words); ok {
		full = strings.Contains(words[0], "/")
		bare := len(rest) == 0 || len(rest) == 1 && strings.EqualFold(rest[0], "default")
		switch {
		case IsLoading(e) && bare && e.Auth.State == cli.Authenticated: // the default model is usable without the list
			return Choice{Agent: e.Agent}, nil
		case IsLoading(e):
			return Choice{}, &Problem{Kind: Loading, Name: name, Agent: e.Agent}
		case listsNothing(e):
			return chooseUnseen(e, rest)
		case !Usable(e):
			return Choice{}, &Problem{Kind: Unusable, Agent: e.Agent, Entry: e}
		}
		pool, words = []cli.MenuEntry{e}, rest
	}
	model, rest, problem := n.model(words, pool, full)
	if problem != nil {
		return n.unseen(words, problem)
	}
	words = rest
	c := Choice{Agent: model.Agent, Model: model.ID}
	if len(words) > 0 {
		c.Effort, problem = effort(words, model)
	}
	return c, problem
}

// Addressed parses a name that a user wrote before a prompt. Unlike Exactly, it also accepts the name of an agent that
// cannot be used. The turn then fails with the reason. Otherwise another agent would get the prompt, which the user did
// not intend.
func (n Names) Addressed(name string) (Choice, bool) {
	if c, ok := n.Exactly(name); ok {
		return c, true
	}
	c, problem := n.Find(name)
	if problem == nil || problem.Kind != Unusable && problem.Kind != NotListed {
		return Choice{}, false
	}
	e, rest, named := n.agent(n.expand(strings.Fields(name)))
	if problem.Kind == NotListed {
		return c, named
	}
	c = Choice{Agent: e.Agent} // ductor does not know the models and efforts of this agent
	if len(rest) > 0 && !strings.EqualFold(rest[0], "default") {
		c.Model = cli.ModelID(rest[0])
	}
	if len(rest) > 1 {
		c.Effort = cli.Effort(rest[1])
	}
	return c, true
}

// Exactly parses a single word. Unlike Find, it does not accept a part of a model's ID or name.
func (n Names) Exactly(name string) (Choice, bool) {
	if strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }) || name == "" {
		return Choice{}, false
	}
	c, problem := n.Find(name)
	if problem != nil && problem.Kind != NotListed {
		return Choice{}, false
	}
	_, alias := n.Aliases[strings.ToLower(name)]
	bare := name
	if agent, model, slash := strings.Cut(name, "/"); slash && strings.EqualFold(agent, string(c.Agent)) {
		bare = model
	}
	whole := alias || strings.EqualFold(name, string(c.Agent)) ||
		bare != name && strings.EqualFold(string(c.Model), bare) ||
		len(modelsWith(n.Entries, func(s string) bool { return strings.EqualFold(s, bare) }, bare)) > 0
	return c, whole
}

// Usable reports whether users can choose the agent.
func Usable(e cli.MenuEntry) bool {
	return e.Auth.State == cli.Authenticated && e.Err == nil && len(e.Models) > 0
}

// IsLoading reports whether the agent's models are still loading.
func IsLoading(e cli.MenuEntry) bool { return errors.Is(e.Err, cli.ErrLoading) }

// expand replaces the first word if it is an alias. An effort in the other words overrides the effort in the alias.
func (n Names) expand(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	alias, ok := n.Aliases[strings.ToLower(words[0])]
	if !ok {
		return words
	}
	meant := strings.Fields(alias.Use)
	if len(words) > 1 && len(meant) > 1 {
		meant = meant[:len(meant)-1]
	}
	return append(meant, words[1:]...)
}

// agent parses the agent in the first word, such as "claude" or "claude/opus". It also returns the remaining words.
func (n Names) agent(words []string) (cli.MenuEntry, []string, bool) {
	name, model, slash := strings.Cut(words[0], "/")
	for _, e := range n.Entries {
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

// model parses the model, and returns the remaining words. withAgent is true if the user wrote AGENT/MODEL. If the user
// named an agent, pool contains only that agent. Without a model in words, model then returns the agent's default
// model.
func (n Names) model(words []string, pool []cli.MenuEntry, withAgent bool) (cli.Model, []string, *Problem) {
	if len(pool) != 1 {
		m, problem := n.findModel(words[0], pool, false)
		return m, words[1:], problem
	}
	byDefault := defaultModel(pool[0])
	switch {
	case len(words) == 0:
		return byDefault, nil, nil
	case strings.EqualFold(words[0], "default"):
		return byDefault, words[1:], nil
	}
	m, problem := n.findModel(words[0], pool, withAgent)
	if problem != nil && problem.Kind == Unknown && n.isEffort(words[0]) {
		return byDefault, words, nil
	}
	return m, words[1:], problem
}

// meansCurrentDefault reports whether a word means the default model of the current agent: the word is "default", and the
// agent lists no model with this name.
func (n Names) meansCurrentDefault(word string) bool {
	same := func(s string) bool { return strings.EqualFold(s, word) }
	return same("default") && slices.ContainsFunc(n.Entries, func(e cli.MenuEntry) bool {
		return e.Agent == n.Current && e.Auth.State == cli.Authenticated && !IsLoading(e) &&
			len(modelsWith([]cli.MenuEntry{e}, same, "")) == 0
	})
}

func (n Names) isEffort(word string) bool {
	for _, e := range n.Entries {
		for _, m := range e.Models {
			if slices.ContainsFunc(m.Efforts, func(e cli.Effort) bool { return strings.EqualFold(string(e), word) }) {
				return true
			}
		}
	}
	return IsEffort(word)
}

// IsEffort reports whether agents commonly use this word as the name of an effort.
func IsEffort(word string) bool {
	return slices.Contains([]string{"default", "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"},
		strings.ToLower(word))
}

// defaultModel returns a model without an ID, which stands for the agent's default. It contains the efforts of the
// model that the agent would use.
func defaultModel(e cli.MenuEntry) cli.Model {
	m := cli.Model{Agent: e.Agent}
	for _, o := range e.Models {
		if o.Default {
			m.Efforts, m.DefaultEffort = o.Efforts, o.DefaultEffort
		}
	}
	return m
}

func effort(words []string, m cli.Model) (cli.Effort, *Problem) {
	if len(words) > 1 {
		return "", &Problem{Kind: TooManyWords}
	}
	if strings.EqualFold(words[0], "default") {
		return "", nil
	}
	for _, e := range m.Efforts {
		if strings.EqualFold(string(e), words[0]) {
			return e, nil
		}
	}
	if len(m.Efforts) == 0 {
		return "", &Problem{Kind: NoEfforts, Model: m}
	}
	return "", &Problem{Kind: UnknownEffort, Name: words[0], Model: m}
}
