package copilot

import (
	"encoding/json"
	"strings"

	"ductor/cli"
)

// settingOf returns a digest of the settings that a session cannot change. Requests with different digests need
// different sessions. The digest does not cover model, effort and permission mode, which can change during a session.
func (p *Provider) settingOf(req cli.Request) string {
	process, _ := p.serverFor(req)
	return cli.Digest(process, req.Dir, req.Project, append([]string{}, req.AddDirs...),
		append([]string{}, req.Tools.Only...), append([]string{}, req.AllowedTools...), append([]string{}, req.Tools.Denied...),
		req.SystemPrompt, req.AppendPrompt, mcpServers(req.Servers, cli.ToolServer.Value))
}

// sessionParams returns the parameters of session.create and session.resume for req. Their schema is SessionConfig in
// the SDK that ships with the CLI.
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
	if req.Project != cli.WithProject {
		params["enableFileHooks"], params["enableConfigDiscovery"] = false, false
	}
	if len(req.Servers) > 0 {
		params["mcpServers"] = mcpServers(req.Servers, cli.ToolServer.Value)
	}
	return params
}

// mcpServers converts tool servers to Copilot's format. It calls lookup for the values of a server's environment
// variables.
func mcpServers(servers []cli.ToolServer, lookup func(s cli.ToolServer, name string) string) map[string]any {
	config := map[string]any{}
	for _, s := range servers {
		one := s.Config("local", func(name string) string { return lookup(s, name) })
		one["tools"] = []string{"*"}
		if s.Timeout > 0 {
			one["timeout"] = s.Timeout.Milliseconds()
		}
		config[s.Name] = one
	}
	return config
}

// named returns a reference to an environment variable. Copilot replaces the reference by the variable's value.
func named(_ cli.ToolServer, name string) string { return cli.ByName(name) }

// serverConfig returns the configuration of tool servers as JSON, or "" if there are none.
func serverConfig(servers []cli.ToolServer) string {
	if len(servers) == 0 {
		return ""
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": mcpServers(servers, named)})
	if err != nil { // cannot happen: strings can always be encoded
		return ""
	}
	return string(raw)
}

// attachments returns the pictures of a prompt, in Copilot's format.
func attachments(images []cli.Image) []map[string]string {
	var list []map[string]string
	for _, image := range images {
		list = append(list, map[string]string{"type": "file", "path": image.Path})
	}
	return list
}
