package config

import (
	"maps"
	"slices"
)

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
		add("roles."+dotted([]string{name})+".model", c.Roles[name].Agent, c.Roles[name].Model)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Jobs)) {
		add("jobs."+dotted([]string{name})+".model", c.Jobs[name].Agent, c.Jobs[name].Model)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks.Hooks)) {
		add("webhooks.hooks."+dotted([]string{name})+".model", c.Webhooks.Hooks[name].Agent, c.Webhooks.Hooks[name].Model)
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
