// Package naming finds the model that a user means by a name: an alias of the configuration, an agent, a model's ID or
// name, or a unique part of it.
//
// The package does not ask agents for their models and does not send messages. If it does not find a model, it returns
// a Problem, from which the caller composes the message to the user.
package naming

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"

	"ductor/cli"
	"ductor/internal/nearest"
)

// Choice is the selected agent and model. An empty model or effort is the agent's default.
type Choice struct {
	Agent  cli.Agent
	Model  cli.ModelID
	Effort cli.Effort
}

// Alias is another name for a model.
type Alias struct {
	Use string `toml:"use"` // a text for Find that contains no alias, such as "claude/haiku" or "codex high"
	// Context and Price are facts about the model that its agent does not report. 0 means unknown.
	Context int64     `toml:"context"` // tokens that it reads
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

// Names are the names among which a user can choose.
type Names struct {
	Entries []cli.MenuEntry
	Aliases map[string]Alias // by name, in lower case
	Current cli.Agent        // its models have priority over other agents' models
}

// ProblemKind is the reason why a name is not a valid choice.
type ProblemKind int

// The kinds of problems.
const (
	NoAgent       ProblemKind = iota // no agent can be used
	Unusable                         // this agent is unusable; Entry has the reason
	Unknown                          // no model has this name: Near may be meant, Models are all models
	Elsewhere                        // a model of Agent, which cannot be used here
	Ambiguous                        // several Models have this name
	TooManyWords                     // after the effort
	NoEfforts                        // Model has no efforts
	UnknownEffort                    // Model has other efforts
	Loading                          // the models of Agent, or of some agents if it is empty, are still loading
)

// Problem explains why a name is not a valid choice. It contains the values for the message to the user.
type Problem struct {
	Kind   ProblemKind
	Name   string // as the user wrote it
	Near   string // a similar name; empty for none
	Agent  cli.Agent
	Entry  cli.MenuEntry
	Model  cli.Model // without an ID: the default model of its agent
	Models []cli.Model
	Meant  []Choice // probable meanings of the name, to offer to the user
}

// Find parses a name: "fast", "codex", "opus", "claude/opus high", "gemini high". It also finds an exact ID that no
// agent lists, such as "claude-opus-4-8" or "claude/opusplan", because agents accept more models than they list. The
// problem is nil if Find found a choice. If the problem is NoEfforts, the choice has only the model.
func (n Names) Find(name string) (Choice, *Problem) {
	words := n.expand(strings.Fields(name))
	if len(words) == 0 {
		return Choice{}, n.unknown("", n.Entries)
	}
	pool, full := n.Entries, false
	if e, rest, ok := n.agent(words); ok {
		full = strings.Contains(words[0], "/")
		bare := len(rest) == 0 || len(rest) == 1 && strings.EqualFold(rest[0], "default")
		switch {
		case IsLoading(e) && bare && e.Auth.State == cli.Authenticated: // no list of models can change the meaning
			return Choice{Agent: e.Agent}, nil
		case IsLoading(e):
			return Choice{}, &Problem{Kind: Loading, Name: name, Agent: e.Agent}
		case !Usable(e):
			return Choice{}, &Problem{Kind: Unusable, Agent: e.Agent, Entry: e}
		}
		pool, words = []cli.MenuEntry{e}, rest
	}
	model, words, problem := n.model(words, pool, full)
	if problem != nil {
		return Choice{}, problem
	}
	c := Choice{Agent: model.Agent, Model: model.ID}
	if len(words) > 0 {
		c.Effort, problem = effort(words, model)
	}
	return c, problem
}

// Exactly parses a name that precedes a prompt. It does not guess: it accepts only an alias, an agent, or the whole ID
// or name of a model.
func (n Names) Exactly(name string) (Choice, bool) {
	if strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }) || name == "" {
		return Choice{}, false
	}
	c, problem := n.Find(name)
	if problem != nil {
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

// Usable reports whether an agent can be chosen.
func Usable(e cli.MenuEntry) bool {
	return e.Auth.State == cli.Authenticated && e.Err == nil && len(e.Models) > 0
}

// IsLoading reports whether the agent's models are still loading.
func IsLoading(e cli.MenuEntry) bool { return errors.Is(e.Err, cli.ErrLoading) }

// expand replaces an alias. An effort after the alias has priority over the effort in the alias.
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

// agent parses an agent in the first word, "claude" or "claude/opus", and returns the words after it.
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

// model parses the model and returns the words after it. If the words named an agent, the model may be missing. full
// reports whether the model was written as AGENT/MODEL.
func (n Names) model(words []string, pool []cli.MenuEntry, full bool) (cli.Model, []string, *Problem) {
	if len(pool) != 1 {
		m, problem := n.named(words[0], pool, false)
		return m, words[1:], problem
	}
	byDefault := defaultModel(pool[0])
	switch {
	case len(words) == 0:
		return byDefault, nil, nil
	case strings.EqualFold(words[0], "default"):
		return byDefault, words[1:], nil
	}
	m, problem := n.named(words[0], pool, full)
	if problem != nil && problem.Kind == Unknown && n.isEffort(words[0]) {
		return byDefault, words, nil
	}
	return m, words[1:], problem
}

// isEffort reports whether some model has an effort with this name.
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

// IsEffort reports whether agents commonly use a word as the name of an effort.
func IsEffort(word string) bool {
	return slices.Contains([]string{"default", "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"},
		strings.ToLower(word))
}

// defaultModel returns the agent's default as a model without an ID. It has the efforts of the model that the agent
// would use.
func defaultModel(e cli.MenuEntry) cli.Model {
	m := cli.Model{Agent: e.Agent}
	for _, o := range e.Models {
		if o.Default {
			m.Efforts, m.DefaultEffort = o.Efforts, o.DefaultEffort
		}
	}
	return m
}

// named finds a model by its ID or name, or by a unique part of them. It accepts an ID that no agent lists if the ID is
// full or has a digit.
func (n Names) named(name string, pool []cli.MenuEntry, full bool) (cli.Model, *Problem) {
	lower := strings.ToLower(name)
	same := func(s string) bool { return strings.ToLower(s) == lower }
	part := func(s string) bool { return strings.Contains(strings.ToLower(s), lower) }
	var here, all []cli.MenuEntry
	loading, first := false, false // whether agents are loading, and whether one of them has priority
	for _, e := range pool {
		loading, first = loading || IsLoading(e), first || IsLoading(e) && e.Agent == n.Current
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
		if first || loading && i == 3 {
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
	case !known || !full && digits(name) == "":
		return cli.Model{}, problem
	case problem.Near != "" && digits(problem.Near) == digits(name): // probably mistyped
		problem.Meant = append(problem.Meant, Choice{Agent: unlisted.Agent, Model: unlisted.ID})
		return cli.Model{}, problem
	}
	return unlisted, nil
}

// Lists reports whether the agent of a choice lists its model, under this ID or an ID that stands for it.
func (n Names) Lists(c Choice) bool {
	return c.Model == "" || slices.ContainsFunc(n.Entries, func(e cli.MenuEntry) bool {
		same := func(s string) bool { return strings.EqualFold(s, string(c.Model)) }
		return e.Agent == c.Agent && len(modelsWith([]cli.MenuEntry{e}, same, string(c.Model))) > 0
	})
}

// modelsWith returns the models whose ID or name fits. If exact is not empty, it also returns a model with that ID if an
// agent reports that a model of its list is that one.
func modelsWith(entries []cli.MenuEntry, fit func(string) bool, exact string) []cli.Model {
	var found []cli.Model
	for _, e := range entries {
		for _, m := range e.Models {
			m.Agent = e.Agent
			full, _, _ := strings.Cut(string(m.Resolved), "[")
			switch {
			case fit(string(m.ID)) || fit(m.Name):
			case exact != "" && (strings.EqualFold(string(m.Resolved), exact) || strings.EqualFold(full, exact)):
				m.ID, m.Name, m.Default = cli.ModelID(exact), "", false
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

// unlisted returns a name as the exact ID of a model that no agent lists. If pool has several agents, unlisted chooses
// the agent by the form of the ID. The model gets the efforts of the agent's default.
func unlisted(name string, pool []cli.MenuEntry) (cli.Model, bool) {
	agent := runs(name)
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

// digits returns the digits of a name. Two versions of a model differ in them.
func digits(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}

// unknown returns the problem for an unknown name. It suggests a similar name, and checks whether an unusable agent has
// the model.
func (n Names) unknown(name string, pool []cli.MenuEntry) *Problem {
	p := &Problem{Kind: Unknown, Name: name}
	known := map[string]string{} // texts for Find, by the names to compare with
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
	if agent := runs(name); p.Near == "" && agent != "" &&
		!slices.ContainsFunc(n.Entries, func(e cli.MenuEntry) bool { return e.Agent == agent && Usable(e) }) {
		p.Kind, p.Agent = Elsewhere, agent
	}
	return p
}

// runs returns the agent that is known for models with names like this one, or "".
func runs(name string) cli.Agent {
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
