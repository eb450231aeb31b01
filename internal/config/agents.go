package config

import (
	"cmp"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/naming"
	"ductor/orchestrator"
)

// Own returns the settings of the agents for which ductor has its own code. The result contains such an agent even if
// the file has no table for it.
func (a Agents) Own() map[cli.Agent]Agent {
	return map[cli.Agent]Agent{"claude": a.Claude, "codex": a.Codex.Agent, "gemini": a.Gemini, "copilot": a.Copilot}
}

func ownNames() []string { return []string{"claude", "codex", "gemini", "copilot"} }

// Names returns the names of all agents: the agents in Own, then the ACP agents.
func (a Agents) Names() []string { return append(ownNames(), slices.Sorted(maps.Keys(a.ACP))...) }

// Enabled reports whether an agent with this name is configured and enabled.
func (a Agents) Enabled(name string) bool {
	return a.Own()[cli.Agent(name)].Enabled || a.ACP[name].Enabled
}

// Table returns the name of an agent's table in the file.
func (a Agents) Table(name string) string {
	if _, ok := a.ACP[name]; ok {
		return below("agents.acp", name)
	}
	return "agents." + name
}

// agentName matches valid names of ACP agents.
var agentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`) })

func (c *Config) checkAgents(p *problems) {
	name := string(c.Agents.Default)
	if slices.Contains(c.Agents.Names(), name) && !c.Agents.Enabled(name) {
		p.add("agents.default", "%q is switched off by %s.enabled", name, c.Agents.Table(name))
	}
	// A disabled agent or the default agent may be in this list. ductor then ignores that entry.
	p.words("agents.fallback", reflect.ValueOf(c.Agents.Fallback), c.Agents.Names())
	for _, name := range slices.Sorted(maps.Keys(c.Agents.ACP)) {
		switch {
		case slices.Contains(ownNames(), name):
			p.add(c.Agents.Table(name), "ductor knows an agent called %s already; choose another name", name)
		case !agentName().MatchString(name):
			p.add(c.Agents.Table(name), "an agent's name is small letters, digits and dashes, such as goose")
		}
	}
}

// checkVariables checks a list of names of environment variables. A name may end with * as a wildcard.
func (p *problems) checkVariables(key string, names []string) {
	for _, name := range names {
		switch {
		case !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`).MatchString(name):
			p.add(key, "%q is not a variable's name; give names such as HTTPS_PROXY or AWS_*, without values",
				hideValue(name))
		case name == TokenVariable:
			p.add(key, "%s would hand the bot's token to the agent", name)
		}
	}
}

// checkAssignments checks the environment of a sandbox, a list of NAME=value.
func (p *problems) checkAssignments(key string, entries []string) {
	for _, entry := range entries {
		name, _, ok := strings.Cut(entry, "=")
		switch {
		case !ok || !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name):
			p.add(key, `%q should be "NAME=value"; what ductor has in its own environment is given by agents.….env`,
				hideValue(entry))
		case name == TokenVariable:
			p.add(key, "%s would hand the bot's token to the agents", name)
		case name == "HOME" || name == "PATH":
			p.add(key, "%s is the sandbox's own", name)
		}
	}
}

// ModelName is the name of a model in the configuration file. Only the agent knows whether the model exists.
type ModelName struct {
	Key  string // setting that contains the name, such as "agents.claude.model"
	Line int    // line in the configuration file, from 1
	Name string // in the form of /model: "claude/opus", or "opus" without an agent
}

// Addable returns the agents of the ACP catalogue that are installed but not configured. It calls lookPath to find a
// program in PATH.
func (a Agents) Addable(lookPath func(program string) (string, error)) (all []acp.Entry) {
	for _, e := range acp.Catalogue() {
		if _, err := lookPath(e.Command); err == nil && !a.Has(e) {
			all = append(all, e)
		}
	}
	return all
}

// Has reports whether an agent of the ACP catalogue is configured. It compares names and programs.
func (a Agents) Has(e acp.Entry) bool {
	for name, s := range a.ACP {
		if name == e.ID || filepath.Base(s.Path) == e.Command {
			return true
		}
	}
	return false
}

// With returns a copy of the configuration that contains an additional agent of the catalogue; see AddAgent.
func (a Agents) With(e acp.Entry) Agents {
	all := map[string]acp.Settings{e.ID: e.Preset(acp.Settings{Enabled: true})}
	maps.Copy(all, a.ACP)
	a.ACP = all
	return a
}

// presetAgent sets the defaults of an agent whose name is in the ACP catalogue. It does nothing if the path in the
// agent's table names another program than the catalogue.
func presetAgent(name string, table any, s *acp.Settings) {
	values, _ := table.(map[string]any)
	path, named := values["path"].(string)
	if e, known := acp.FindEntry(name); known && (!named || filepath.Base(path) == e.Command) {
		*s = e.Preset(*s)
	}
}

// modelNames returns the settings in the file that contain the name of a model.
func (c *Config) modelNames(doc document) (all []ModelName) {
	add := func(key string, agent cli.Agent, model string) {
		if agent != "" && model != "" {
			model = string(agent) + "/" + model
		}
		if model != "" {
			all = append(all, ModelName{Key: key, Line: doc.positions[key].line, Name: model})
		}
	}
	visit(setting{value: reflect.ValueOf(*c)}, func(s setting) {
		_, name, _ := cutLast(s.key)
		switch v := s.value.Interface().(type) {
		case Agent:
			add(s.key+".model", cli.Agent(name), string(v.Model))
		case acp.Settings:
			add(s.key+".model", cli.Agent(name), string(v.Model))
		case orchestrator.Role:
			add(s.key+".model", v.Agent, string(v.Model))
		case orchestrator.JobTurn:
			add(s.key+".model", v.Agent, string(v.Model))
		case naming.Alias:
			add(s.key+".use", "", v.Use)
		}
	})
	for key, names := range map[string][]string{
		"sessions.summary_model": {c.Sessions.SummaryModel}, "consult.group": c.Consult.Group,
	} {
		for _, name := range names {
			if _, isAlias := c.Models[name]; !isAlias {
				add(key, "", name)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ModelName) int { return cmp.Compare(a.Line, b.Line) })
	return all
}
