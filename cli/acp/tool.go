package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"ductor/cli"
)

const maxTitle = 200

// tool is what is known of a tool call.
type tool struct {
	id      cli.ToolID
	name    string
	kind    string
	title   string
	input   json.RawMessage
	output  json.RawMessage
	content []toolContent
	places  []location
	started bool // ToolStarted was emitted
	ended   bool
	refused bool // it was not allowed
}

// take notes what an agent says of the call.
func (t *tool) take(c toolCall, content []toolContent, name func(id, kind, title string) string) {
	if c.ToolKind != nil {
		t.kind = *c.ToolKind
	}
	if c.Title != nil && *c.Title != "" {
		t.title = *c.Title
	}
	if len(c.Input) > 0 && string(c.Input) != "null" {
		t.input = c.Input
	}
	if len(c.Output) > 0 && string(c.Output) != "null" {
		t.output = c.Output
	}
	if c.Locations != nil {
		t.places = c.Locations
	}
	if content != nil {
		t.content = content
	}
	if command := t.command(); command != "" {
		t.title = command
	}
	t.name = t.kind
	if name != nil {
		if own := name(string(t.id), t.kind, t.title); own != "" {
			t.name = own
		}
	}
	if t.name == "" {
		t.name = "tool"
	}
}

// command is the command line that a tool runs, where the agent gives it as one; else it is the title's to say.
func (t *tool) command() string {
	var in struct {
		Command string `json:"command"`
	}
	if t.kind != kindRun || json.Unmarshal(t.input, &in) != nil {
		return ""
	}
	return in.Command
}

// begun is the tool's ToolStarted.
func (t *tool) begun() cli.ToolStarted {
	title := strings.Join(strings.Fields(t.title), " ")
	return cli.ToolStarted{ID: t.id, Name: t.name, Title: cli.Shorten(title, maxTitle), Input: t.input}
}

// over is its ToolEnded.
func (t *tool) over(status string, exit func(string) *int) cli.ToolEnded {
	end := cli.ToolEnded{ID: t.id, Output: t.words()}
	if exit != nil && t.kind == kindRun {
		end.ExitCode = exit(end.Output)
	}
	if status == statusFailed {
		if end.Err = cli.ShortLine(end.Output); end.Err == "" {
			end.Err = "failed"
		}
	}
	return end
}

// words is what the tool shows, as text.
func (t *tool) words() string {
	var parts []string
	for _, c := range t.content {
		var b block
		if c.Type == "content" && json.Unmarshal(c.Content, &b) == nil && b.words() != "" {
			parts = append(parts, b.words())
		}
	}
	if len(parts) > 0 || len(t.output) == 0 {
		return strings.Join(parts, "\n")
	}
	return outputWords(t.output)
}

// outputWords is a raw output as text: agents give a string, an object with one, or anything.
func outputWords(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var named struct {
		Output  string `json:"output"`
		Content string `json:"content"`
		Stdout  string `json:"stdout"`
		Error   string `json:"error"`
	}
	if json.Unmarshal(raw, &named) == nil {
		for _, s := range []string{named.Output, named.Content, named.Stdout, named.Error} {
			if s != "" {
				return s
			}
		}
	}
	return string(raw)
}

// changes are the files the tool changes, or would.
func (t *tool) changes(dir string) []cli.FileChanged {
	var list []cli.FileChanged
	for _, c := range t.content {
		if c.Type != "diff" || c.Path == "" {
			continue
		}
		old := ""
		if c.OldText != nil {
			old = *c.OldText
		}
		path := cli.Relative(dir, c.Path)
		list = append(list, cli.FileChanged{Path: path, Kind: c.change(), Diff: unified(old, c.NewText)})
	}
	return list
}

func (c toolContent) change() cli.ChangeKind {
	switch {
	case c.Meta.Kind == "add" || c.Meta.Kind == "" && c.OldText == nil:
		return cli.FileAdded
	case c.Meta.Kind == "delete":
		return cli.FileDeleted
	}
	return cli.FileUpdated
}

// paths are the files it is about.
func (t *tool) paths() []string {
	var list []string
	for _, c := range t.content {
		if c.Type == "diff" {
			list = append(list, c.Path)
		}
	}
	for _, l := range t.places {
		if !slices.Contains(list, l.Path) {
			list = append(list, l.Path)
		}
	}
	return list
}
