package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// enabled says of every agent, by name, whether it is switched on.
func (a Agents) enabled() map[string]bool {
	all := map[string]bool{
		agentClaude: a.Claude.Enabled, agentCodex: a.Codex.Enabled, agentGemini: a.Gemini.Enabled, agentCopilot: a.Copilot.Enabled,
	}
	for name, acp := range a.ACP {
		all[name] = acp.Enabled
	}
	return all
}

// Enabled says whether there is an agent of this name that is switched on.
func (a Agents) Enabled(name string) bool { return a.enabled()[name] }

// Table is the table of the file that an agent has.
func (a Agents) Table(name string) string { return a.key(name) }

// Names are those of all agents, ductor's own first.
func (a Agents) Names() []string {
	return append(ownAgents(), slices.Sorted(maps.Keys(a.ACP))...)
}

// key is the table of an agent.
func (a Agents) key(name string) string {
	if _, ok := a.ACP[name]; ok {
		return "agents.acp." + dotted([]string{name})
	}
	return "agents." + name
}

// environments are the further variables each agent may see, by key.
func (a Agents) environments() map[string][]string {
	all := map[string][]string{
		"agents.claude.env": a.Claude.Env, "agents.codex.env": a.Codex.Env,
		"agents.gemini.env": a.Gemini.Env, "agents.copilot.env": a.Copilot.Env,
	}
	for name, acp := range a.ACP {
		all["agents.acp."+dotted([]string{name})+".env"] = acp.Env
	}
	return all
}

// agentName is what an agent may be called: it is typed in /model and kept with its sessions.
var agentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`) })

func (c *Config) checkACP(p *problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Agents.ACP)) {
		acp, key := c.Agents.ACP[name], "agents.acp."+dotted([]string{name})
		switch {
		case slices.Contains(ownAgents(), name):
			p.add(key, "ductor knows an agent called %s already; choose another name", name)
		case !agentName().MatchString(name):
			p.add(key, "an agent's name is small letters, digits and dashes, such as goose")
		}
		if strings.TrimSpace(acp.Path) == "" {
			p.add(key+".path", "an agent needs a program")
		}
	}
}

// ModelName is a place of the file that names a model. Whether an agent has it, only the agent knows.
type ModelName struct {
	Key  string // dotted, such as "agents.claude.model"
	Line int    // from 1
	Name string // as /model takes it: "claude/opus", or "opus" where no agent is named
}

// modelNames lists the models that the file names, in the order of their kinds and names.
func (c *Config) modelNames(doc document) (all []ModelName) {
	add := func(key, agent, model string) {
		switch {
		case model == "":
			return
		case agent != "":
			model = agent + "/" + model
		}
		all = append(all, ModelName{Key: key, Line: doc.positions[key].line, Name: model})
	}
	a := &c.Agents
	add("agents.claude.model", "claude", a.Claude.Model)
	add("agents.codex.model", "codex", a.Codex.Model)
	add("agents.gemini.model", "gemini", a.Gemini.Model)
	add("agents.copilot.model", "copilot", a.Copilot.Model)
	for _, name := range slices.Sorted(maps.Keys(a.ACP)) {
		add("agents.acp."+dotted([]string{name})+".model", name, a.ACP[name].Model)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Roles)) {
		add("roles."+dotted([]string{name})+".model", string(c.Roles[name].Agent), string(c.Roles[name].Model))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Jobs)) {
		add("jobs."+dotted([]string{name})+".model", string(c.Jobs[name].Agent), string(c.Jobs[name].Model))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks.Hooks)) {
		add("webhooks.hooks."+dotted([]string{name})+".model", string(c.Webhooks.Hooks[name].Agent), string(c.Webhooks.Hooks[name].Model))
	}
	if _, alias := c.Models[c.Sessions.SummaryModel]; !alias {
		add("sessions.summary_model", "", c.Sessions.SummaryModel)
	}
	for _, name := range c.Consult.Group {
		if _, alias := c.Models[name]; !alias {
			add("consult.group", "", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		add("models."+dotted([]string{name})+".use", "", c.Models[name].Use)
	}
	return all
}
