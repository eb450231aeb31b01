package claude

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"ductor/cli"
)

type format string

const (
	formatLive   format = "live"        // input and output in stream-json, for many turns
	formatStream format = "stream-json" // the prompt as text, output in stream-json, for one turn
	formatBlocks format = "blocks"      // the prompt in JSON lines, output in stream-json, for one turn
)

// arguments returns the command line for req, without the program. The prompts are not on the command line. ductor
// writes the user's prompt to standard input, and system prompts to files.
func arguments(f format, req cli.Request, files promptFiles) ([]string, error) {
	mode, err := permissionFlag(req.Permission)
	if err != nil {
		return nil, err
	}
	settings, extra, _, err := settingsOf(req)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-p"}, f.flags()...)
	args = addFlag(args, "--resume", string(req.Resume))
	args = append(args, projectFlags(req)...)
	if req.Model != "" && req.Model != defaultModel {
		args = addFlag(args, "--model", string(req.Model))
	}
	args = addFlag(args, "--effort", string(req.Effort))
	args = addFlag(args, "--permission-mode", mode)
	args = addFlag(args, "--settings", cmp.Or(files.settings, settings))
	args = addFlag(args, "--system-prompt-file", files.replace)
	args = addFlag(args, "--append-system-prompt-file", files.add)
	args = append(args, toolFlags(req)...)
	for _, dir := range req.AddDirs {
		args = addFlag(args, "--add-dir", dir)
	}
	if req.Budget > 0 && f != formatLive { // in a live process, Claude would count the cost of all turns
		args = addFlag(args, "--max-budget-usd", strconv.FormatFloat(max(req.Budget, 0.01), 'f', 2, 64))
	}
	if req.MaxTurns > 0 {
		args = addFlag(args, "--max-turns", strconv.Itoa(req.MaxTurns))
	}
	args = addFlag(args, "--mcp-config", serverConfig(req.Servers))
	return append(args, extra...), nil
}

// projectFlags returns flags that make Claude ignore the project's settings, unless a user allowed all of them. Claude
// can ignore the project's MCP servers only with --strict-mcp-config. With this flag, it also ignores the MCP servers
// in the user's settings.
//
// The flag --add-dir makes Claude read the project's memory files, such as CLAUDE.md; see projectVars.
func projectFlags(req cli.Request) []string {
	var args []string
	// A list of permitted tools also needs this flag, because the flag --tools excludes only built-in tools.
	if req.Project == cli.WithoutProject || len(req.Tools.Only) > 0 {
		args = append(args, "--strict-mcp-config")
	}
	if req.Project == cli.WithProject {
		return args
	}
	return addFlag(append(args, "--setting-sources", "user"), "--add-dir", req.Dir)
}

// projectVars returns two environment variables. The first makes Claude ignore .claude/scheduled_tasks.json. Claude
// would run the prompts in this file between turns, and has no flag to prevent this. The second makes Claude read the
// memory files of the working directory, which are safe because they contain only text.
func projectVars(req cli.Request) map[string]string {
	if req.Project == cli.WithProject {
		return nil
	}
	return map[string]string{"CLAUDE_CODE_DISABLE_CRON": "1", "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1"}
}

// allowedTools returns Claude's rules for the tools that req allows, and for all tools of trusted servers.
func allowedTools(req cli.Request) []string {
	allowed := rules(req.AllowedTools)
	for _, s := range req.Servers {
		if s.Trusted {
			allowed = append(allowed, "mcp__"+s.Name)
		}
	}
	return allowed
}

// serverConfig returns the value of --mcp-config. It contains references to environment variables, which Claude
// replaces by their values.
//
// Claude offers all tools of a server with alwaysLoad to the model, and waits for the server up to
// MCP_CONNECT_TIMEOUT_MS. Claude waits two seconds for any other server, and the model may have to search for its
// tools.
func serverConfig(servers []cli.ToolServer) string {
	if len(servers) == 0 {
		return ""
	}
	config := map[string]any{}
	for _, s := range servers {
		one := s.Config("stdio", cli.ByName)
		if s.Trusted {
			one["alwaysLoad"] = true
		}
		config[s.Name] = one
	}
	return strings.TrimSpace(string(jsonLine(map[string]any{"mcpServers": config})))
}

// toolFlags returns the flags for the lists of permitted and denied tools. Claude neither offers a denied tool to the
// model nor runs it, in any mode.
func toolFlags(req cli.Request) []string {
	args := addFlag(nil, "--tools", strings.Join(req.Tools.Only, ","))
	args = addFlag(args, "--allowedTools", strings.Join(allowedTools(req), ","))
	return addFlag(args, "--disallowedTools", strings.Join(rules(req.Tools.Denied), ","))
}

// rules converts tool names to Claude's permission rules. The name of an MCP server becomes a rule for all tools of
// that server.
func rules(names []string) []string {
	servers, rest := cli.Servers(names)
	for _, server := range servers {
		rest = append(rest, "mcp__"+server)
	}
	return rest
}

func (f format) flags() []string {
	switch f {
	case formatLive:
		return []string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
			"--include-partial-messages", "--permission-prompt-tool", "stdio", "--replay-user-messages"}
	case formatBlocks:
		return []string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
			"--include-partial-messages"}
	default:
		return []string{"--output-format", "stream-json", "--verbose", "--include-partial-messages"}
	}
}

// addFlag appends a flag with its value, or nothing if the value is empty. If the value starts with a dash, addFlag
// joins it to the flag, so that Claude does not read the value as a flag.
func addFlag(args []string, flag, value string) []string {
	switch {
	case value == "":
		return args
	case strings.HasPrefix(value, "-"):
		return append(args, flag+"="+value)
	default:
		return append(args, flag, value)
	}
}

// permissionFlag returns the value of --permission-mode for a permission mode. It returns an error for an unknown mode,
// because Claude would accept any name.
//
// Claude's own acceptEdits mode allows too much: some commands, and edits of hidden files and of ductor's files.
// permissionFlag therefore returns Claude's default mode for accept-edits. If a user can answer, ductor itself accepts
// the edits.
func permissionFlag(mode cli.PermissionMode) (string, error) {
	switch mode {
	case "", cli.Ask, cli.AcceptEdits:
		return "default", nil
	case cli.Plan:
		return "plan", nil
	case cli.Auto:
		return "auto", nil
	case cli.Bypass:
		return "bypassPermissions", nil
	}
	return "", fmt.Errorf("permission mode %q is not known", mode)
}

// Tools that only ask the user a question.
const (
	toolQuestion = "AskUserQuestion"
	toolExitPlan = "ExitPlanMode"
)

// denial returns a message for the model, and a reason for users. Both explain why ductor denied the use of a tool: no
// user can answer the agent's request.
func denial(tool string) (message, reason string) {
	switch tool {
	case toolQuestion:
		return "This dialog cannot be answered here. Put the question, with its options, into your answer " +
				"as plain text and end your turn; the user will reply with the next message.",
			"questions are asked in the answer"
	case toolExitPlan:
		return "The plan cannot be approved in this dialog. Put the whole plan into your answer as plain text " +
				"and end your turn; the user will say with the next message whether to go on.",
			"plans are shown in the answer"
	}
	return fmt.Sprintf("%s was not allowed: the permission mode of this conversation does not let it through, "+
			"and it cannot be approved now. Do what you can without it, and say what you could not do.", tool),
		"the permission mode does not let it through"
}

// allowedEnv returns patterns of the environment variables that Claude may get in addition to those in cli.BaseEnv.
func allowedEnv(parent []string) []string {
	allow := []string{
		"ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_*", "CLAUDE_BASH_*", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY",
		"DISABLE_ERROR_REPORTING", "DISABLE_PROMPT_CACHING",
		"DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "API_TIMEOUT_MS", "MAX_THINKING_TOKENS",
		"BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH", "MCP_TIMEOUT", "MCP_CONNECT_TIMEOUT_MS", "MCP_TOOL_TIMEOUT",
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
