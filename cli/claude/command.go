package claude

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"ductor/cli"
)

// format is the input and output format of a process.
type format string

const (
	formatLive   format = "live"        // stream-json in and out, many turns
	formatStream format = "stream-json" // the prompt as text, stream-json out, one turn
	formatBlocks format = "blocks"      // lines of JSON in (images, or freshPrompts), stream-json out, one turn
)

// arguments returns the command line for req, without the program. It contains no prompts: the prompt is sent later,
// and system prompts are in files.
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
	if req.Budget > 0 && f != formatLive { // a live process counts more than one turn
		args = addFlag(args, "--max-budget-usd", strconv.FormatFloat(max(req.Budget, 0.01), 'f', 2, 64))
	}
	if req.MaxTurns > 0 {
		args = addFlag(args, "--max-turns", strconv.Itoa(req.MaxTurns))
	}
	args = addFlag(args, "--mcp-config", serverConfig(req.Servers))
	return append(args, extra...), nil
}

// projectFlags starts Claude without the settings of the project, unless a user allowed all of them. If the project has
// settings, it also excludes the user's own MCP servers, because no flag except --strict-mcp-config concerns servers
// alone. With --add-dir Claude still reads the memory files of the project; see projectVars.
func projectFlags(req cli.Request) []string {
	var args []string
	if req.Project == cli.WithoutProject || len(req.Tools.Only) > 0 { // --tools concerns only Claude's own tools
		args = append(args, "--strict-mcp-config")
	}
	if req.Project == cli.WithProject {
		return args
	}
	return addFlag(append(args, "--setting-sources", "user"), "--add-dir", req.Dir)
}

// projectVars turns off settings of the project for which Claude has no flag: the prompts in
// .claude/scheduled_tasks.json, which Claude runs between turns. It also makes Claude read the memory files of the
// working directory. These are safe, because they are only text.
func projectVars(req cli.Request) map[string]string {
	if req.Project == cli.WithProject {
		return nil
	}
	return map[string]string{"CLAUDE_CODE_DISABLE_CRON": "1", "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1"}
}

// allowedTools returns the rules of a request, and one for each server whose tools are allowed.
func allowedTools(req cli.Request) []string {
	allowed := rules(req.AllowedTools)
	for _, s := range req.Servers {
		if s.Trusted {
			allowed = append(allowed, "mcp__"+s.Name)
		}
	}
	return allowed
}

// serverConfig returns the value of --mcp-config. Claude inserts the values of variables from its own environment. A
// Trusted server is marked to be always loaded: Claude waits for it as long as Claude's environment says, and always
// offers its tools. For other servers Claude waits two seconds, and may offer their tools only through a search.
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

// toolFlags returns the flags with the lists of tools. Claude does not offer a denied tool to the model, and does not
// run it in any mode.
func toolFlags(req cli.Request) []string {
	args := addFlag(nil, "--tools", strings.Join(req.Tools.Only, ","))
	args = addFlag(args, "--allowedTools", strings.Join(allowedTools(req), ","))
	return addFlag(args, "--disallowedTools", strings.Join(rules(req.Tools.Denied), ","))
}

// rules converts names to Claude's rules. Claude has its own notation for the tools of a server.
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

// addFlag appends a flag with a value. It appends nothing if the value is empty. If the value starts with a dash,
// addFlag joins it to the flag, so that Claude cannot read the value as a flag.
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

// permissionFlag returns the mode of a request for --permission-mode. It validates the mode, because Claude accepts
// unknown names without an error.
//
// Claude's own acceptEdits mode allows too much: Claude edits every file below its directories that it does not
// consider sensitive, including hidden files and ductor's files, and runs some commands. So Claude is made to ask for
// edits if possible, and ductor accepts them.
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

// Tools that ask the user something and change nothing.
const (
	toolQuestion = "AskUserQuestion"
	toolExitPlan = "ExitPlanMode"
)

// denial returns the message for Claude after it asks for permission, and the reason for the user.
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

// allowedEnv returns the variables of Claude that a child may see in addition to the base list.
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
