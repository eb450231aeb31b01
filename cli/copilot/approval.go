package copilot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

// approval converts a permission request to an event that asks the user.
func approval(p *parser, id cli.ApprovalID, asked permissionAsked, raw json.RawMessage) cli.ApprovalAsked {
	ev := cli.ApprovalAsked{ID: id, Tool: asked.Kind, Input: raw, Reason: cmp.Or(asked.Hook, asked.Warning, cli.OwnWords(asked.Intention))}
	if t, ok := p.tools[asked.ToolCallID]; ok {
		ev.Tool, ev.Started = t.Name, t.ID
	}
	read := cli.Reading{
		Dir:  p.dir,
		Said: map[string]string{"hookMessage": ev.Reason, "warning": ev.Reason, "intention": ev.Reason},
		Usual: map[string]string{
			"kind": asked.Kind, "shellType": "bash", "hasWriteFileRedirection": "false", "possiblePaths": "[]", "possibleUrls": "[]",
			"commands": "[]", "hookMessage": "", "warning": "", "managedApprovalRequired": "false",
		},
		Labels: []string{"toolCallId", "canOfferSessionApproval", "commands", "commandSegments", "assistedApproval"},
		Wider:  []string{"requestSandboxBypass"},
	}
	if cli.OwnWords(asked.Intention) == "" || strings.TrimSpace(asked.Intention) == ev.Reason {
		read.Said["intention"] = asked.Intention
	}
	for i, path := range asked.Possible {
		if cli.HasWord(asked.Command, path) {
			read.Said[fmt.Sprintf("possiblePaths[%d]", i)] = path
		}
	}
	whole := subject(asked, &read)
	switch asked.Kind {
	case "write":
		ev.Reason, read.Edit = cmp.Or(asked.Hook, asked.Warning), []string{"intention", "resolvedPath"}
		if cli.OwnWords(asked.Intention) != "" {
			read.Said["intention"] = ev.Reason
		}
		whole = cli.Relative(p.dir, asked.File)
		ev.Changes = changesOf(asked, whole, &read)
	case "read":
		whole = cli.Relative(p.dir, asked.Path)
	}
	if whole == "" {
		whole = strings.Join(asked.Paths, ", ")
	}
	ev.Fields = read.Fields(raw)
	ev.Title = cli.OneLine(whole, maxTitle)
	if ev.Title != whole {
		ev.Detail = whole
	}
	switch {
	case asked.Kind == "shell" && whole == "":
		ev.Missing = "the command"
	case !ev.Allowable():
		ev.Missing = "what it would do"
	}
	ev.Title = cmp.Or(ev.Title, asked.Kind)
	ev.Effect = effectOf(ev, asked, p.dir)
	return ev
}

// effectOf returns the effect of a request. Rules use the effect to decide whether to allow the request. Rules do not
// allow a command or a read for which Copilot gives a reason to ask. Copilot adds an intention to every request, so
// effectOf does not count the intention as a reason.
func effectOf(ev cli.ApprovalAsked, asked permissionAsked, dir string) cli.Effect {
	e := cli.EffectOf(ev.Input, dir, nil)
	reason := ev.Reason
	if inWords(reason) == inWords(asked.Intention) {
		reason = ""
	}
	if asked.Kind == "shell" {
		e.Command = ""
		if !asked.Redirects && strings.TrimSpace(asked.Command) != "" && cli.HasOnlyFields(ev.Input, "kind", "fullCommandText",
			"shellType", "intention", "commands", "commandSegments", "possiblePaths", "possibleUrls",
			"canOfferSessionApproval", "hasWriteFileRedirection") {
			e.Command = asked.Command
		}
	}
	if asked.Kind == "mcp" {
		e.Server = asked.Server
	}
	switch ev.Tool {
	case "bash", "shell":
		e.Shell = cli.ShellUseFor(reason)
	case "powershell":
		e.Shell = cli.ShellExplained
	case "view", "glob", "grep":
		// A search in a directory also reads hidden files, but a search in a file does not.
		inDirectory := ev.Tool == "grep" && !strings.HasPrefix(ev.Reason, "Search in file: ")
		if asked.Kind == "read" && reason == "" && !inDirectory &&
			cli.HasOnlyFields(ev.Input, "kind", "path", "intention", "canOfferSessionApproval") {
			e.Read = asked.Path
		}
	}
	return e
}

// inWords returns a text with single spaces between its words.
func inWords(text string) string { return strings.Join(strings.Fields(text), " ") }

// subject returns the main content of a request, such as the command or the URL. It is in different fields for
// different kinds of requests. For an unknown kind, subject returns the tool's name.
func subject(asked permissionAsked, read *cli.Reading) string {
	type field struct{ name, value string }
	about, known := map[string][]field{
		"shell":  {{"fullCommandText", asked.Command}},
		"mcp":    {{"serverName", asked.Server}, {"toolName", asked.Tool}},
		"url":    {{"url", asked.URL}},
		"memory": {{"fact", asked.Fact}},
		"read":   {{"path", asked.Path}},
		"write":  {{"fileName", asked.File}},
	}[asked.Kind]
	if !known {
		about = []field{{"toolName", asked.Tool}}
	}
	var values []string
	for _, f := range about {
		read.Said[f.name] = f.value
		values = append(values, f.value)
	}
	return strings.Join(values, ".")
}

// changesOf returns the file change that a request would make. It also adds the fields that users can see in this
// change to known.
func changesOf(asked permissionAsked, name string, known *cli.Reading) []cli.FileChanged {
	kind := cli.FileUpdated
	was := func(e permissionEdit) bool { return e.Before != nil }
	if asked.NewFile != "" && !slices.ContainsFunc(asked.Edits, was) {
		kind = cli.FileAdded
	}
	change := cli.FileChanged{Path: name, Kind: kind, Diff: cli.Hunks(asked.Diff)}
	if change.Diff != "" {
		known.Usual["diff"] = asked.Diff
	}
	addContents(asked, change.Diff, known.Said)
	if asked.Resolved == asked.File {
		known.Said["resolvedPath"] = asked.File
	} else if !cli.VisibleBelow(known.Dir, asked.Resolved) {
		known.Wider = append(known.Wider, "resolvedPath") // the path leads out of the working directory through a link
	}
	return []cli.FileChanged{change}
}

// addContents adds the file's path to shownFields, which contains the fields that users already see. If the diff shows
// the change completely, addContents also adds the file's content before and after the change.
func addContents(asked permissionAsked, diff string, shownFields map[string]string) {
	before := ""
	for i, e := range asked.Edits {
		old, now := e.Before, e.After
		if old == nil {
			old = &fileState{Path: asked.File}
		}
		if now == nil || now.Path != asked.File || old.Path != asked.File {
			continue
		}
		at := fmt.Sprintf("fileEdits[%d].", i)
		shownFields[at+"before.path"], shownFields[at+"after.path"] = asked.File, asked.File
		if cli.DiffMakes(diff, old.Content, now.Content) {
			before = old.Content
			shownFields[at+"before.content"], shownFields[at+"after.content"] = old.Content, now.Content
		}
	}
	if cli.DiffMakes(diff, before, asked.NewFile) {
		shownFields["newFileContents"] = asked.NewFile
	}
}

// planApproval returns the event that asks the user to approve a plan.
func planApproval(id cli.ApprovalID, summary, plan string, raw json.RawMessage) cli.ApprovalAsked {
	read := cli.Reading{
		Said:   map[string]string{"planContent": plan, "summary": summary},
		Labels: []string{"sessionId", "toolCallId", "requestId", "actions", "recommendedAction"},
	}
	ev := cli.ApprovalAsked{ID: id, Tool: cli.PlanTool, Title: cli.ShortLine(summary), Detail: plan, Input: raw}
	if !strings.Contains(inWords(plan), inWords(summary)) {
		ev.Detail = strings.TrimSpace(summary + "\n\n" + plan)
	}
	ev.Fields = read.Fields(raw)
	return ev
}
