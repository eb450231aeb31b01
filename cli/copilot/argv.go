package copilot

import (
	"strings"

	"ductor/cli"
)

// serverArgs returns the command-line arguments of a live process.
func serverArgs(req cli.Request) []string {
	return append([]string{"--headless", "--no-auto-update", "--stdio"}, req.ExtraArgs...)
}

// onceArgs returns the command-line arguments for one turn in a separate process. The prompt is not among them, because
// Copilot reads it from standard input. The form FLAG=VALUE prevents Copilot from reading a value from a user as
// another flag.
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
	args = append(args, toolFlags(req)...)
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
	args = value(args, "--additional-mcp-config", serverConfig(req.Servers))
	return append(args, req.ExtraArgs...), nil
}

// toolFlags returns the flags for the lists of permitted, allowed and denied tools.
func toolFlags(req cli.Request) []string {
	args := value(nil, "--available-tools", strings.Join(req.Tools.Only, ","))
	args = value(args, "--excluded-tools", strings.Join(excluded(req.Tools.Denied), ","))
	for _, flag := range []struct {
		name  string
		rules []string
	}{{"--allow-tool", req.AllowedTools}, {"--deny-tool", req.Tools.Denied}} {
		servers, rest := cli.Servers(flag.rules)
		for _, rule := range append(rest, servers...) {
			args = value(args, flag.name, rule)
		}
	}
	return args
}

func value(args []string, flag, v string) []string {
	if v == "" {
		return args
	}
	return append(args, flag+"="+v)
}

// refused returns a failure if Copilot cannot receive the prompt, or else nil.
func refused(req cli.Request) *cli.Failure {
	if strings.ContainsRune(req.Prompt, 0) {
		return cli.Failf(cli.Refused, Agent, "failure.not-text")
	}
	return req.Unsendable(Agent)
}
