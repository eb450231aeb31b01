package claude

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"ductor/cli"
)

// format is what a process reads and writes.
type format string

const (
	formatLive   format = "live"        // stream-json in and out, many turns
	formatStream format = "stream-json" // the prompt as text, stream-json out, one turn
	formatBlocks format = "blocks"      // lines of JSON in (images, or freshPrompts), stream-json out, one turn
)

// arguments is the command line for req, without the program. No prompt is ever on it: the system prompts
// are in files.
func arguments(f format, req cli.Request, files promptFiles) ([]string, error) {
	mode, err := permissionFlag(f, req)
	if err != nil {
		return nil, err
	}
	settings, extra, _, err := settingsOf(req)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-p"}, f.flags()...)
	args = add(args, "--resume", string(req.Resume))
	args = append(args, projectFlags(req)...)
	if req.Model != "" && req.Model != defaultModel {
		args = add(args, "--model", string(req.Model))
	}
	args = add(args, "--effort", string(req.Effort))
	args = add(args, "--permission-mode", mode)
	args = add(args, "--settings", cmp.Or(files.settings, settings))
	args = add(args, "--system-prompt-file", files.replace)
	args = add(args, "--append-system-prompt-file", files.add)
	args = append(args, toolFlags(req)...)
	for _, dir := range req.AddDirs {
		args = add(args, "--add-dir", dir)
	}
	if req.Budget > 0 && f != formatLive { // a live process counts more than one turn
		args = add(args, "--max-budget-usd", strconv.FormatFloat(max(req.Budget, 0.01), 'f', 2, 64))
	}
	args = add(args, "--mcp-config", serverConfig(req.Servers))
	return append(args, extra...), nil
}

// projectFlags start Claude without the settings of the project, unless a user allowed all of them. The user's own MCP servers are
// left out only where the project brings something: no flag but --strict-mcp-config is about servers alone. --add-dir has
// Claude read the project's memory files although its settings are off; see projectVars.
func projectFlags(req cli.Request) []string {
	var args []string
	if req.Project == cli.WithoutProject || len(req.Tools.Only) > 0 { // --tools is about Claude's own tools alone
		args = append(args, "--strict-mcp-config")
	}
	if req.Project == cli.WithProject {
		return args
	}
	return add(append(args, "--setting-sources", "user"), "--add-dir", req.Dir)
}

// projectVars keep Claude from the settings of the project that no flag switches off: prompts in .claude/scheduled_tasks.json,
// which it runs between turns. They have it read the memory files of the working directory, which are text.
func projectVars(req cli.Request) map[string]string {
	if req.Project == cli.WithProject {
		return nil
	}
	return map[string]string{"CLAUDE_CODE_DISABLE_CRON": "1", "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1"}
}

// allowedTools are the rules of a request, and one for each server whose tools go through.
func allowedTools(req cli.Request) []string {
	allowed := rules(req.AllowedTools)
	for _, s := range req.Servers {
		if s.Trusted {
			allowed = append(allowed, "mcp__"+s.Name)
		}
	}
	return allowed
}

// serverConfig is what --mcp-config takes. Claude puts in the values of variables, which it has itself. It waits for a server that it is
// always to load, as long as its environment says, and has the tools of that at hand; others it waits for two seconds, and may have their
// tools searched for.
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

// toolFlags are the lists of tools. A tool that is denied is not offered to the model, and in no mode does it run.
func toolFlags(req cli.Request) []string {
	args := add(nil, "--tools", strings.Join(req.Tools.Only, ","))
	args = add(args, "--allowedTools", strings.Join(allowedTools(req), ","))
	return add(args, "--disallowedTools", strings.Join(rules(req.Tools.Denied), ","))
}

// rules are names as Claude has them in its rules, where a server has a name of its own.
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

// add appends a flag with a value, and nothing for an empty value. A value that begins with a dash is
// joined to its flag, so that it can never be read as a flag of its own.
func add(args []string, flag, value string) []string {
	switch {
	case value == "":
		return args
	case strings.HasPrefix(value, "-"):
		return append(args, flag+"="+value)
	default:
		return append(args, flag, value)
	}
}

// permissionFlag is the mode of a request as --permission-mode takes it. Claude accepts names it does not know with
// success, so the check is ours. In its own acceptEdits Claude edits every file below its directories that it does not take
// for sensitive, hidden ones and ductor's among them, and runs some commands. So it asks for edits as long as it can, and
// they are accepted above.
func permissionFlag(f format, req cli.Request) (string, error) {
	switch mode := req.Permission; mode {
	case "", cli.Ask:
		return "default", nil
	case cli.AcceptEdits:
		if f == formatLive && req.Attended {
			return "default", nil
		}
		return "acceptEdits", nil
	case cli.Plan:
		return "plan", nil
	case cli.Auto:
		return "auto", nil
	case cli.Bypass:
		return "bypassPermissions", nil
	}
	return "", fmt.Errorf("permission mode %q is not known", req.Permission)
}

// The tools that ask the user something rather than act.
const (
	toolQuestion = "AskUserQuestion"
	toolExitPlan = "ExitPlanMode"
)

// denial is what Claude is told when it asks for permission, and the reason that the user reads.
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

// allowedEnv are the variables of Claude's own that a child may see besides the base list.
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
