package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"ductor/cli"
)

// started describes a tool item, or says that it is none.
func started(it *item, dir string) (cli.ToolStarted, bool) {
	t := cli.ToolStarted{ID: cli.ToolID(it.ID)}
	switch it.Type {
	case itemCommand:
		t.Name, t.Title = "shell", plainCommand(it.Command)
		t.Input, _ = json.Marshal(map[string]string{"command": it.Command})
	case itemFiles:
		t.Name, t.Title = "patch", changedPaths(it.Changes, dir)
		t.Input, _ = json.Marshal(it.Changes)
	case itemMCP:
		t.Name, t.Title, t.Input = it.Server+"."+it.Tool, compact(it.Arguments), it.Arguments
	case itemCollab:
		t.Name, t.Title = it.Tool, it.Prompt
	case itemSearch:
		t.Name, t.Title = "web_search", it.Query
	case itemTodo:
		t.Name, t.Title = "plan", progress(it.Items)
	default:
		return cli.ToolStarted{}, false
	}
	t.Title = cli.OneLine(t.Title, maxTitle)
	return t, true
}

const maxTitle = 200

// ended describes how a tool item ended.
func ended(it *item) cli.ToolEnded {
	e := cli.ToolEnded{ID: cli.ToolID(it.ID), Output: it.Output, ExitCode: it.ExitCode}
	if e.Output == "" {
		e.Output = compact(it.Result)
	}
	switch {
	case it.Error != nil && it.Error.Message != "":
		e.Err = cli.ShortLine(it.Error.Message)
	case it.ExitCode != nil && *it.ExitCode != 0:
		e.Err = fmt.Sprintf("exit code %d", *it.ExitCode)
	case it.Status == "failed" || it.Status == "declined":
		e.Err = it.Status
	}
	return e
}

// plainCommand takes off the shell that Codex wraps around every command.
func plainCommand(command string) string {
	if inner := withoutShell(command); inner != command {
		return unquote(inner)
	}
	return command
}

// withoutShell is what follows the shell that Codex wraps around a command, still quoted.
func withoutShell(command string) string {
	for _, shell := range []string{"/bin/bash -lc ", "bash -lc ", "/bin/sh -c ", "/bin/zsh -lc "} {
		if inner, ok := strings.CutPrefix(command, shell); ok {
			return inner
		}
	}
	return command
}

// unquote undoes the single or double quotes around one shell word; anything else stays as it is.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return strings.ReplaceAll(s[1:len(s)-1], `'\''`, `'`)
	}
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`").Replace(s[1 : len(s)-1])
	}
	return s
}

func changedPaths(changes []change, dir string) string {
	var paths []string
	for _, c := range changes {
		paths = append(paths, cli.Relative(dir, c.Path))
	}
	return strings.Join(paths, ", ")
}

func progress(items []todo) string {
	done := 0
	next := ""
	for _, it := range items {
		if it.Completed {
			done++
		} else if next == "" {
			next = it.Text
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", done, len(items), next))
}

func compact(raw json.RawMessage) string {
	if s := string(raw); s != "null" {
		return s
	}
	return ""
}
