package claude

import "ductor/cli"

// allowedEnv are the variables of Claude's own that a child may see besides the base list.
func allowedEnv(parent []string) []string {
	allow := []string{
		"ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_*", "CLAUDE_BASH_*", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY",
		"DISABLE_ERROR_REPORTING", "DISABLE_PROMPT_CACHING",
		"DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "API_TIMEOUT_MS", "MAX_THINKING_TOKENS",
		"BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT",
		"MAX_MCP_OUTPUT_TOKENS", "USE_BUILTIN_RIPGREP", "IS_SANDBOX",
	}
	if cli.Variable(parent, "CLAUDE_CODE_USE_BEDROCK") != "" {
		allow = append(allow, "AWS_*")
	}
	if cli.Variable(parent, "CLAUDE_CODE_USE_VERTEX") != "" {
		allow = append(allow, "GOOGLE_*", "CLOUD_ML_REGION", "VERTEX_REGION_*", "GCLOUD_PROJECT")
	}
	if cli.Variable(parent, "CLAUDE_CODE_USE_FOUNDRY") != "" {
		allow = append(allow, "AZURE_*")
	}
	return allow
}

// environment is what a process started for req sees, and nothing else.
func (p *Provider) environment(req cli.Request) []string {
	parent := p.opts.Env()
	own := map[string]string{}
	if cli.Variable(parent, "DISABLE_AUTOUPDATER") == "" {
		own["DISABLE_AUTOUPDATER"] = "1" // a CLI that changes under a running bot breaks it
	}
	if req.Permission == cli.Bypass {
		// Claude run by root takes this mode only when told that the place is a sandbox; whoever picked
		// the mode for the conversation took that on.
		own["IS_SANDBOX"] = "1"
	}
	return p.atHome(req, p.opts.ChildEnv(req, allowedEnv(parent), own))
}
