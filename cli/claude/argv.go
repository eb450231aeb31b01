package claude

import (
	"strconv"
	"strings"

	"ductor/cli"
)

// format is what a process reads and writes.
type format string

const (
	formatLive   format = "live"        // stream-json in and out, many turns
	formatStream format = "stream-json" // the prompt as text, stream-json out, one turn
	formatBlocks format = "blocks"      // one user message as JSON (it has images), stream-json out, one turn
)

// arguments is the command line for req, without the program. No prompt is ever on it: the system prompts
// are in files.
func arguments(f format, req cli.Request, files promptFiles) ([]string, error) {
	mode, err := permissionFlag(f, req)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-p"}, f.flags()...)
	args = append(args, sessionFlags(req)...)
	if req.Project == cli.WithoutProject {
		args = append(args, "--strict-mcp-config", "--setting-sources", "user")
	}
	if req.Model != "" && req.Model != defaultModel {
		args = add(args, "--model", string(req.Model))
	}
	args = add(args, "--effort", string(req.Effort))
	args = add(args, "--permission-mode", mode)
	args = add(args, "--system-prompt-file", files.replace)
	args = add(args, "--append-system-prompt-file", files.add)
	args = add(args, "--tools", strings.Join(req.Tools, ","))
	args = add(args, "--allowedTools", strings.Join(req.AllowedTools, ","))
	args = add(args, "--disallowedTools", strings.Join(req.DeniedTools, ","))
	for _, dir := range req.AddDirs {
		args = add(args, "--add-dir", dir)
	}
	args = add(args, "--mcp-config", req.MCPConfig)
	if req.MaxTurns > 0 {
		args = add(args, "--max-turns", strconv.Itoa(req.MaxTurns))
	}
	if req.MaxBudgetUSD > 0 {
		args = add(args, "--max-budget-usd", strconv.FormatFloat(req.MaxBudgetUSD, 'f', -1, 64))
	}
	return append(args, req.ExtraArgs...), nil
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

// sessionFlags picks the one way to name the session. Naming an id twice with --session-id is an error
// of Claude's, so going on always takes --resume.
func sessionFlags(req cli.Request) []string {
	if req.Resume != "" {
		return add(nil, "--resume", string(req.Resume))
	}
	return add(nil, "--session-id", string(req.NewSessionID))
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
