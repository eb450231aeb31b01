package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/naming"
	"ductor/cli/tools"
	"ductor/mcp/servers"
	"ductor/orchestrator"
)

// Secrets returns all secrets in the configuration. If a secret may be escaped in a text, the result also contains the
// escaped form.
func (c Config) Secrets() []string {
	var all []string
	add := func(value, escaped string) {
		if value != "" {
			all = append(all, value)
		}
		if escaped != value {
			all = append(all, escaped)
		}
	}
	token := c.Telegram.Token.Reveal()
	add(token, url.QueryEscape(token))
	for _, h := range c.Webhooks.Hooks {
		add(h.Secret.Reveal(), h.Secret.Reveal())
	}
	for _, k := range c.Keys {
		all = append(all, k.Value.Reveal())
	}
	all = append(all, c.Sandbox.secrets()...)
	if u, err := url.Parse(c.Telegram.Proxy.Reveal()); err == nil && u.User != nil {
		password, _ := u.User.Password()
		_, escaped, _ := strings.Cut(u.User.String(), ":")
		add(password, escaped)
	}
	return all
}

func (c *Config) check() (p problems) {
	c.checkTelegram(&p)
	visit(setting{value: reflect.ValueOf(*c)}, func(s setting) {
		_, isToolList := s.value.Interface().(cli.ToolList)
		// Settings of a disabled heartbeat may be incomplete, so check only its tool lists.
		if c.Heartbeat.Enabled || isToolList || !strings.HasPrefix(s.key, "heartbeat") {
			p.check(s)
			c.checkReferences(&p, s)
		}
	})
	c.checkTogether(&p)
	c.checkAgents(&p)
	c.checkUsers(&p)
	c.checkRoles(&p)
	c.checkServers(&p)
	if len(c.Agents.ACP) == 0 { // tools of ACP agents have names that ductor does not know
		checkTools(&p, "permissions.allowed_tools", c.Permissions.AllowedTools, tools.Check)
	}
	checkTools(&p, "permissions.denied_tools", c.Permissions.DeniedTools, tools.Check)
	c.checkModels(&p)
	c.checkSummary(&p)
	c.checkPlaces(&p)
	c.checkSandbox(&p)
	c.checkHealth(&p)
	return p.withoutInherited()
}

func (c *Config) checkTelegram(p *problems) {
	t := c.Telegram
	switch {
	case t.Token == "":
		p.add(keyToken, "there is no bot token; set it here, or name a file in token_file, or set the variable %s. "+
			"@BotFather gives you one", TokenVariable)
	case !regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]{10,}$`).MatchString(t.Token.Reveal()):
		p.add(keyToken, "this is not a bot token; one looks like 123456789:AAE… and comes from @BotFather")
	}
	if proxy := t.Proxy.Reveal(); proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
			p.add("telegram.proxy",
				"should be a URL such as socks5://127.0.0.1:1080 or http://user:password@proxy:3128")
		}
	}
	for _, id := range t.AllowedUsers {
		if id <= 0 {
			p.add("telegram.allowed_users",
				"%d is not a user's id; those are positive. Groups go to allowed_groups", id)
		}
	}
}

// hideValue removes the value from NAME=VALUE, because it may be a secret.
func hideValue(s string) string {
	if name, _, ok := strings.Cut(s, "="); ok {
		return name + "=…"
	}
	return s
}

func (c *Config) checkRoles(p *problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Roles)) {
		role, key := c.Roles[name], below("roles", name)
		if strings.TrimSpace(role.Prompt) == "" {
			p.add(key+".prompt", "a role needs a prompt")
		}
	}
	if name := c.Sessions.DefaultRole; name != "" && !c.hasRole(name) {
		p.add("sessions.default_role", "there is no [%s], and no such file in the folder roles beside this one",
			below("roles", name))
	}
}

// checkServers checks the names of MCP servers. A server and an agent must not have the same name, because package keys
// uses the names to store the API keys of both.
func (c *Config) checkServers(p *problems) {
	for _, name := range slices.Sorted(maps.Keys(c.MCP.Servers)) {
		if err := servers.CheckName(name); err != nil {
			p.add(below("mcp.servers", name), "%v", err)
		} else if slices.Contains(c.Agents.Names(), name) {
			p.add(below("mcp.servers", name), "an agent has this name")
		}
	}
}

// CheckServer returns an error unless name is an MCP server in the configuration, or orchestrator.NoServers.
func (c *Config) CheckServer(name string) error {
	if _, ok := c.MCP.Servers[name]; ok || name == orchestrator.NoServers {
		return nil
	}
	return fmt.Errorf("there is no [%s]", below("mcp.servers", name))
}

// checkModels checks the aliases of models: their names, and the names of the agents. It cannot check whether a model
// exists, because only the agent knows that.
func (c *Config) checkModels(p *problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		key := below("models", name)
		if name != strings.ToLower(name) || strings.ContainsAny(name, " \t\n/@") || name == "" {
			p.add(key, "the name must be one word in lower case, such as fast")
		}
		if slices.Contains(c.Agents.Names(), name) {
			p.add(key, "an agent has this name")
		}
		words := strings.Fields(c.Models[name].Use)
		if len(words) == 0 {
			continue
		}
		agent, _, full := strings.Cut(words[0], "/")
		p.word(key+".use", agent, c.Agents.Names()...)
		switch {
		case !full && len(words) > 1 && !naming.IsEffort(words[1]):
			p.add(key+".use", "%q is no effort; a model follows its agent after a slash, such as %s/%[1]s",
				words[1], words[0])
		case len(words) > 2:
			p.add(key+".use", "%q is too much; write an agent, a model and an effort, such as claude/opus high",
				words[2])
		}
	}
}

// checkSummary checks the agent of sessions.summary_model, and the number of models in consult.group.
func (c *Config) checkSummary(p *problems) {
	if agent := c.Summarizes().Agent; agent != "" {
		p.word("sessions.summary_model", string(agent), c.Agents.Names()...)
	}
	if n := len(c.Consult.Group); n == 1 || n > 4 {
		p.add("consult.group", "has %d models; a group has 2 to 4", n)
	}
}

func (c *Config) checkPlaces(p *problems) {
	if c.Storage.Dir == "" {
		p.add("storage.dir", "is empty")
	}
	if len(c.Projects.Roots) == 0 {
		p.add("projects.roots", "is empty; agents need a directory to work in")
		return
	}
	for i, root := range c.Projects.Roots {
		if root == "" {
			p.add(fmt.Sprintf("projects.roots[%d]", i), "is empty")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Projects.Named)) {
		dir, key := c.Projects.Named[name].Dir, below("projects.named", name)
		if !c.inRoots(dir) {
			p.add(key+".dir", "%q is outside of projects.roots (%s)", dir, strings.Join(c.Projects.Roots, ", "))
		}
		if strings.ContainsAny(name, "@ ") {
			p.add(key, "a name has neither @ nor blanks")
		}
		for _, file := range c.Projects.Named[name].Context {
			if !filepath.IsLocal(file) {
				p.add(key+".context", "%q is no path below the project's directory", file)
			}
		}
	}
	dir := c.Projects.DefaultDir
	if dir == "" {
		p.add("projects.default_dir", "is empty; name a directory inside roots")
		return
	}
	if filepath.IsAbs(dir) && !c.inRoots(dir) {
		p.add("projects.default_dir", "%s is outside of projects.roots (%s)", dir, strings.Join(c.Projects.Roots, ", "))
	}
}

// doubts returns warnings about settings that are valid but probably unintended.
func (c *Config) doubts() []string {
	var all []string
	t := c.Telegram
	if len(t.AllowedUsers) == 0 && (len(t.AllowedGroups) == 0 || t.GroupMembers != "all") {
		all = append(all,
			"telegram.allowed_users is empty, so the bot answers no user; write to the bot and the log names your id")
	}
	if len(t.AllowedUsers) == 0 && len(t.AllowedGroups) > 0 && t.GroupMembers == "all" {
		all = append(all, "telegram.allowed_users lists no user: members of groups may send prompts, "+
			"but no user may allow what agents ask for or change settings")
	}
	if strings.HasPrefix(t.APIBase, "http://") && !cli.OnThisMachine(t.APIBase) {
		all = append(all, "telegram.api_base is not encrypted: whoever is on the way can read the token")
	}
	if t.APIFiles != "" && t.APIBase == Default().Telegram.APIBase {
		all = append(all, "telegram.api_files is for a Bot API server of your own; Telegram's serves its files itself")
	}
	if strings.HasPrefix(c.Voice.URL, "http://") && !cli.OnThisMachine(c.Voice.URL) {
		all = append(all, "voice.url is not encrypted: whoever is on the way can read the key and hear what you say")
	}
	for _, name := range slices.Sorted(maps.Keys(c.MCP.Servers)) {
		if s := c.MCP.Servers[name]; strings.HasPrefix(s.URL, "http://") && !s.Loopback() && len(s.Headers) > 0 {
			all = append(all, below("mcp.servers", name)+
				".url is not encrypted: whoever is on the way can read its headers")
		}
	}
	return append(all, c.sandboxDoubts()...)
}
