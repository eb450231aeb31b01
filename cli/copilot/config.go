package copilot

import (
	"encoding/json"
	"slices"
	"strings"

	"ductor/cli"
)

// setting is what binds a session: a request with other values needs another one. Model, effort and permission mode
// are not in it, for they are changed as it lives.
type setting struct {
	process string // the key of the process
	dir     string
	project cli.ProjectSettings
	lists   [4][]string // further directories; tools; allowed; denied
	texts   [3]string   // system prompts, tool servers
	begin   string      // the session that it began with, while it has had no turn
}

func (p *Provider) settingOf(req cli.Request) setting {
	return setting{
		process: serverKey(p.opts.Path, serverArgs(req), p.environment(req)), dir: req.Dir, project: req.Project,
		lists: [4][]string{req.AddDirs, req.Tools.Only, req.AllowedTools, req.Tools.Denied},
		texts: [3]string{req.SystemPrompt, req.AppendPrompt, serverConfig(req.Servers, direct)},
		begin: string(req.Resume),
	}
}

func (s setting) fits(other setting) bool {
	if s.process != other.process || s.dir != other.dir || s.project != other.project || s.texts != other.texts {
		return false
	}
	for i := range s.lists {
		if !slices.Equal(s.lists[i], other.lists[i]) {
			return false
		}
	}
	return true
}

// sessionParams are those of session.create and session.resume for req. Its type is SessionConfig of the SDK that
// ships with the CLI.
func (p *Provider) sessionParams(req cli.Request, id cli.AgentSessionID) map[string]any {
	env := p.environment(req)
	params := map[string]any{
		"sessionId": id, "clientName": "ductor", "streaming": true, "includeSubAgentStreamingEvents": false,
		"requestPermission": true, "requestUserInput": true, "requestExitPlanMode": true, "envValueMode": "direct",
		"enableSessionTelemetry": false,
	}
	set := func(name string, value string) {
		if value != "" {
			params[name] = value
		}
	}
	set("workingDirectory", req.Dir)
	set("model", string(modelOf(req, env)))
	set("reasoningEffort", string(req.Effort))
	if len(req.AddDirs) > 0 {
		params["additionalDirectories"] = req.AddDirs
	}
	if len(req.Tools.Only) > 0 {
		params["availableTools"] = req.Tools.Only
	}
	if names := excluded(req.Tools.Denied); len(names) > 0 {
		params["excludedTools"] = names
	}
	if provider := ownProvider(env); provider != nil {
		params["provider"] = provider
	}
	switch {
	case req.SystemPrompt != "":
		whole := strings.TrimSpace(req.SystemPrompt + "\n\n" + req.AppendPrompt)
		params["systemMessage"] = map[string]any{"mode": "replace", "content": whole}
	case req.AppendPrompt != "":
		params["systemMessage"] = map[string]any{"mode": "append", "content": req.AppendPrompt}
	}
	if req.Project == cli.WithoutProject {
		params["enableFileHooks"], params["enableConfigDiscovery"] = false, false
	}
	if len(req.Servers) > 0 {
		params["mcpServers"] = mcpServers(req.Servers, direct)
	}
	return params
}

// values says how a configuration of servers gives the values of variables.
type values string

const (
	direct values = "direct" // as they are
	named  values = "named"  // by the names of variables that Copilot has itself
)

// mcpServers are servers as Copilot takes them.
func mcpServers(servers []cli.ToolServer, by values) map[string]any {
	config := map[string]any{}
	for _, s := range servers {
		env := map[string]string{}
		for _, name := range s.VarNames() {
			env[name] = s.Env[name]
			if by == named {
				env[name] = "${" + name + "}"
			}
		}
		one := map[string]any{"type": "local", "command": s.Path, "args": append([]string{}, s.Args...), "env": env, "tools": []string{"*"}}
		if s.Timeout > 0 {
			one["timeout"] = s.Timeout.Milliseconds()
		}
		config[s.Name] = one
	}
	return config
}

// serverConfig is a configuration of servers as text; empty for none.
func serverConfig(servers []cli.ToolServer, by values) string {
	if len(servers) == 0 {
		return ""
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": mcpServers(servers, by)})
	if err != nil { // texts can always be encoded
		return ""
	}
	return string(raw)
}

// attachments are the pictures of a prompt.
func attachments(images []cli.Image) []map[string]string {
	var list []map[string]string
	for _, image := range images {
		list = append(list, map[string]string{"type": "file", "path": image.Path})
	}
	return list
}
