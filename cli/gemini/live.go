package gemini

import (
	"regexp"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/cli/acp"
)

// acp is Gemini as an agent of the Agent Client Protocol.
func (p *Provider) acp() *acp.Provider {
	o := p.opts
	return acp.New(acp.Options{
		Agent: Agent, Path: o.Path, Args: []string{"--acp"}, Argv: liveArgs, Launcher: o.Launcher,
		Env: o.Env, AllowEnv: append(EnvKeys(), o.AllowEnv...), ExtraEnv: ownEnv(),
		// Gemini has tools of its own for both, and they ask.
		NoFiles: true, NoTerminals: true,
		Quirks: acp.Quirks{
			LateHistory: true, CommandMarks: commandMarks, ToolName: toolName, KindOf: kindOf, ExitCode: exitCode,
		},
		Login: loginFix, Auth: p.Auth,
		Grace: o.Grace, Stall: o.Stall, ToolStall: o.ToolStall, Now: o.Now, Logger: o.Logger,
	})
}

// liveArgs are the arguments that bind a live process.
func liveArgs(req cli.Request) []string {
	var args []string
	if len(req.AddDirs) > 0 {
		args = append(args, "--include-directories="+strings.Join(req.AddDirs, ","))
	}
	if len(req.AllowedTools) > 0 {
		args = append(args, "--allowed-tools="+strings.Join(req.AllowedTools, ","))
	}
	return args
}

// commandMarks begin commands of Gemini's own.
const commandMarks = "/$"

// toolName is the name that begins the id of a call.
func toolName(id, _, _ string) string {
	name, _, found := strings.Cut(id, "__")
	if !found {
		name, _, found = strings.Cut(id, "-")
	}
	if !found {
		return ""
	}
	return name
}

var exitLine = regexp.MustCompile(`(?m)^(?:Command exited with code:|Exit Code:) (-?\d{1,9})\.?$`)

// exitCode finds the exit code of a shell command: Gemini says it in words when it is not 0.
func exitCode(output string) *int {
	m := exitLine.FindAllStringSubmatch(output, -1)
	switch {
	case m == nil && strings.HasPrefix(output, "Command cancelled by user"):
		return nil
	case m == nil:
		return new(int)
	}
	code, err := strconv.Atoi(m[len(m)-1][1])
	if err != nil {
		return nil
	}
	return &code
}

// live is a session of package acp that is asked what Gemini's settings make of a request.
type live struct {
	cli.Session
	cli.Asker
	provider *Provider
}

var (
	_ cli.Session = (*live)(nil)
	_ cli.Asker   = (*live)(nil)
)

func (p *Provider) settled(s cli.Session) cli.Session {
	asker, ok := s.(cli.Asker)
	if !ok {
		return s
	}
	return &live{Session: s, Asker: asker, provider: p}
}

// Fits is true when the settings are those the process was started with, too.
func (l *live) Fits(req cli.Request) bool {
	req, err := l.provider.settle(req)
	return err == nil && l.Session.Fits(req)
}
