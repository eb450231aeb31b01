package copilot

import (
	"strings"

	"ductor/cli"
)

// serverArgs is the command line of a live process.
func serverArgs(req cli.Request) []string {
	return append([]string{"--headless", "--no-auto-update", "--stdio"}, req.ExtraArgs...)
}

// onceArgs is the command line of a one-shot turn. The prompt is not on it: it travels on standard input. Values
// that users choose are tied to their flags, so that none can pass for a flag.
func onceArgs(req cli.Request, id cli.AgentSessionID) ([]string, error) {
	p, err := permissionOf(req.Permission)
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"--output-format", "json", "--no-auto-update", "--no-color", "--disable-client-telemetry", "--no-remote-export",
		"--no-ask-user",
	}, p.flags...)
	if req.Resume != "" {
		args = append(args, "--resume="+string(req.Resume))
	} else {
		args = append(args, "--session-id="+string(id))
	}
	args = value(args, "--model", string(req.Model))
	args = value(args, "--reasoning-effort", string(req.Effort))
	args = value(args, "--available-tools", strings.Join(req.Tools, ","))
	for _, tool := range req.AllowedTools {
		args = value(args, "--allow-tool", tool)
	}
	for _, tool := range req.DeniedTools {
		args = value(args, "--deny-tool", tool)
	}
	for _, dir := range req.AddDirs {
		args = value(args, "--add-dir", dir)
	}
	for _, image := range req.Images {
		args = value(args, "--attachment", image.Path)
	}
	for _, s := range req.Servers {
		if s.Trusted {
			args = value(args, "--allow-tool", s.Name)
		}
	}
	args = value(args, "--additional-mcp-config", serverConfig(req.Servers, named))
	return append(args, req.ExtraArgs...), nil
}

func value(args []string, flag, v string) []string {
	if v == "" {
		return args
	}
	return append(args, flag+"="+v)
}

// promptOf is the prompt of a one-shot turn. There is no flag for system prompts, so they go before it.
func promptOf(req cli.Request) string {
	return req.Instructions() + req.Prompt
}

// refused says why a prompt cannot be sent; nil if it can.
func refused(req cli.Request) *cli.Failure {
	switch {
	case strings.TrimSpace(req.Prompt) == "" && len(req.Images) == 0:
		return cli.Failf(cli.Refused, Agent, "the message is empty")
	case strings.ContainsRune(req.Prompt, 0):
		return cli.Failf(cli.Refused, Agent, "the message has NUL bytes in it, which are no text")
	}
	return nil
}
