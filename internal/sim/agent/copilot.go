package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// copilotArgs contains the options of Copilot that the scripted agent supports.
type copilotArgs struct {
	version, headless         bool
	allowAll                  bool
	allow, deny               []string
	prompt, id, resume, model string
	json                      bool
}

// parseCopilot parses a command line. The value of an option follows after "=" or as the next word.
func parseCopilot(args []string) (a copilotArgs, err error) {
	for i := 0; i < len(args); i++ {
		name, v, tied := strings.Cut(args[i], "=")
		next := func() string {
			if !tied && i+1 < len(args) {
				i++
				return args[i]
			}
			return v
		}
		switch name {
		case "--version", "-v":
			a.version = true
		case "--headless":
			a.headless = true
		case "--allow-all", "--yolo", "--allow-all-tools":
			a.allowAll = true
		case "--allow-tool":
			a.allow = append(a.allow, next())
		case "--deny-tool":
			a.deny = append(a.deny, next())
		case "-p", "--prompt":
			a.prompt = next()
		case "--session-id":
			a.id = next()
		case "--resume":
			a.resume = next()
		case "--model":
			a.model = next()
		case "--output-format":
			a.json = next() == "json"
		case "--mode", "--reasoning-effort", "--available-tools", "--add-dir", "--attachment",
			"--additional-mcp-config":
			next()
		case "--stdio", "--no-auto-update", "--no-color", "--disable-client-telemetry", "--no-remote-export",
			"--no-ask-user", "--assisted-approval":
		default:
			return a, fmt.Errorf("error: unexpected argument '%s' found", args[i])
		}
	}
	return a, nil
}

func (p *process) copilot(args []string) int {
	a, err := parseCopilot(args)
	switch {
	case err != nil:
		return p.fail(1, err.Error())
	case a.version:
		fmt.Fprintln(p.stdout, "GitHub Copilot CLI "+copilotVersion+".")
		return 0
	case a.headless:
		return p.copilotServer()
	}
	return p.copilotOnce(a)
}

// copilotLogin reports whether the environment contains a token that Copilot accepts.
func (p *process) copilotLogin() bool {
	for _, name := range []string{"COPILOT_PROVIDER_BASE_URL", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"} {
		if p.env[name] != "" {
			return true
		}
	}
	return false
}

// copilotOnce runs one prompt and prints events as lines of JSON.
func (p *process) copilotOnce(a copilotArgs) int {
	if !p.copilotLogin() {
		return p.fail(1, "Error: No authentication information found.")
	}
	id := or(a.id, newUUID())
	switch {
	case a.resume != "" && !p.store.has(copilotFolder, a.resume):
		return p.fail(1, "Error: No session, task, or name matched '"+a.resume+"'.")
	case a.resume != "":
		id = a.resume
	}
	if a.prompt == "" {
		b, err := io.ReadAll(p.stdin)
		if err != nil {
			return p.fail(1, "Error: "+err.Error())
		}
		a.prompt = string(b)
	}
	ctx, cancel := context.WithCancelCause(p.life)
	defer cancel(nil)
	t := &copilotTurn{
		process: p, ctx: ctx, session: id, model: or(a.model, or(p.env["COPILOT_MODEL"], "gpt-5.2")),
		emit: func(kind string, data json.RawMessage, ephemeral bool) {
			p.out.line(copilotEvent(kind, data, ephemeral))
		},
		ask: func(kind, _ string, _ json.RawMessage) (bool, string) {
			named := func(list []string) bool {
				return slices.ContainsFunc(list, func(r string) bool {
					return r == kind || strings.HasPrefix(r, kind+"(")
				})
			}
			return (a.allowAll || named(a.allow)) && !named(a.deny),
				"Permission denied because no interactive user response was available."
		},
	}
	done := make(chan error, 1)
	go func() { done <- t.run(a.prompt) }()
	var err error
	select {
	case err = <-done:
	case s := <-p.signals:
		cancel(signalError{s})
		err = <-done
	}
	return p.copilotResult(t, err)
}

// copilotResult prints the last line of a run with one prompt.
func (p *process) copilotResult(t *copilotTurn, err error) int {
	var exit exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	code := 0
	if t.failed {
		code = 1
	}
	var signal signalError
	if !errors.As(err, &signal) || signal.Signal == os.Interrupt {
		p.out.line(obj("type", "result", "timestamp", copilotNow(), "sessionId", t.session, "exitCode", code, "usage",
			obj("premiumRequests", 0, "totalApiDurationMs", 0, "sessionDurationMs", 0, "codeChanges",
				obj("linesAdded", 0, "linesRemoved", 0, "filesModified", []string{}))))
	}
	return code
}
