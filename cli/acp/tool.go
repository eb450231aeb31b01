package acp

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/acp/edit"
	"ductor/cli/acp/workspace"
)

const maxTitle = 200

// Kinds of tools that the protocol defines.
const (
	kindRead   = "read"
	kindSearch = "search"
	kindThink  = "think"
	kindFetch  = "fetch"
	kindEdit   = "edit"
	kindDelete = "delete"
	kindMove   = "move"
	kindRun    = "execute"
	kindSwitch = "switch_mode" // the agent wants to leave plan mode, and its plan needs approval
)

type toolPhase string

// States of a tool call.
const (
	toolNamed   toolPhase = ""        // the agent mentioned the tool call
	toolWaits   toolPhase = "waits"   // ToolStarted was emitted, and the tool waits for permission
	toolRuns    toolPhase = "runs"    // ToolStarted was emitted, and the tool runs
	toolEnded   toolPhase = "ended"   // ToolEnded was emitted
	toolRefused toolPhase = "refused" // the tool was denied
)

// tool is the stored state of a tool call.
type tool struct {
	call     toolCall // the agent's description, merged from all its updates
	name     string
	phase    toolPhase
	shown    cli.ToolStarted // the event that users saw
	planFile string          // path of the plan that needs approval, if the agent does not send the plan itself
	printed  string          // output of a command that the agent runs in its own terminal
	exit     *int            // exit code of that command

	wrote, terminals []string
}

// tools contains the tool calls of a turn by ID, and the commands that ductor runs for the agent by terminal ID.
type tools struct {
	all, running map[string]*tool // without the tool calls that have ended
	commands     map[string]command
}

// merge adds new data from the agent to the stored description of the call. name is ToolQuirks.Name; it may be nil.
func (t *tool) merge(c toolCall, name func(id, kind, title string) string) {
	t.call.ToolKind, t.call.Title = cmp.Or(c.ToolKind, t.call.ToolKind), cmp.Or(c.Title, t.call.Title)
	if given(c.Input) {
		t.call.Input = c.Input
	}
	if given(c.Output) {
		t.call.Output = c.Output
	}
	if c.Locations != nil {
		t.call.Locations = c.Locations
	}
	if c.Content != nil {
		t.call.Content = c.Content
	}
	if given(c.Meta) && t.call.questions() == nil {
		t.call.Meta = c.Meta
		t.watchTerminal(c.Meta)
	}
	t.call.Title = cmp.Or(t.call.command(), t.call.Title)
	t.call.Name = cmp.Or(c.Name, t.call.Name)
	own := t.call.toolName()
	if own == "" && name != nil {
		own = name(t.call.ID, t.call.ToolKind, t.call.Title)
	}
	t.name = cmp.Or(own, t.call.ToolKind, "tool")
}

// watchTerminal records the output and the exit code of a command that the agent itself runs in a terminal. The
// protocol has no fields for them. The adapters of Codex and Claude send them in the metadata.
func (t *tool) watchTerminal(meta json.RawMessage) {
	var news struct {
		Delta struct {
			Data string `json:"data"`
		} `json:"terminal_output_delta"`
		Exit struct {
			Code *int `json:"exit_code"`
		} `json:"terminal_exit"`
	}
	if json.Unmarshal(meta, &news) != nil {
		return
	}
	t.printed, t.exit = t.printed+news.Delta.Data, cmp.Or(news.Exit.Code, t.exit)
	if more := len(t.printed) - workspace.MaxOutput; more > 0 {
		t.printed = strings.ToValidUTF8(t.printed[more:], "")
	}
}

// given reports whether the agent sent a value.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// command returns the command line that the tool runs. It returns "" if the agent does not send the command line as one
// text. The title then contains it.
func (c *toolCall) command() string {
	var in commandInput
	if c.ToolKind != kindRun || json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	return in.Command
}

// commandInput is the input of a tool that runs a command.
type commandInput struct {
	Command string `json:"command"`
}

func (in commandInput) encode() json.RawMessage {
	raw, _ := json.Marshal(in) // strings can always be encoded
	return raw
}

// lacksInput reports whether the tool's input in an update is incomplete, because the model is still generating it.
// OpenCode sends the directory of a command before the command itself.
func (t *tool) lacksInput(c toolCall) bool {
	return c.Status == statusPending && (string(c.Input) == "{}" || t.call.ToolKind == kindRun && given(c.Input) && t.call.command() == "")
}

// began returns the ToolStarted event of the tool. If the tool uses exactly one file, the title is usually the file's
// path instead of the agent's title.
func (t *tool) began(dir string) cli.ToolStarted {
	title := t.call.Title
	switch questions := t.call.questions(); {
	case len(questions) > 0:
		title = questions[0].Text
	case t.planFile != "":
		title = path.Base(t.planFile)
	case t.call.ToolKind == kindRun:
	default:
		if paths := t.paths(); len(paths) == 1 && (t.call.ToolKind == kindEdit || strings.EqualFold(title, t.name) || strings.HasSuffix(title, path.Base(paths[0]))) {
			title = cli.Relative(dir, paths[0])
		}
	}
	input := t.call.Input
	if t.call.ToolKind == kindRun && !given(input) { // Gemini sends the command only in the title
		input = commandInput{t.call.Title}.encode()
	}
	return cli.ToolStarted{
		ID: cli.ToolID(t.call.ID), Name: t.name, Title: cli.OneLine(title, maxTitle), Input: input,
	}
}

// over returns the ToolEnded event of the tool. The parameter failure may be nil; see ToolQuirks. For a command with an
// unknown result, the event's error is cli.ToolUntold.
func (t *tool) over(status string, failure func(output string) (*int, string)) cli.ToolEnded {
	end := cli.ToolEnded{ID: cli.ToolID(t.call.ID), Output: t.text()}
	run := t.call.ToolKind == kindRun
	if run {
		end.Output, end.ExitCode = cmp.Or(end.Output, t.printed), cmp.Or(t.exit, t.exitCode())
	}
	if run && failure != nil && end.ExitCode == nil {
		end.ExitCode, end.Err = failure(end.Output)
	}
	switch silent := failure != nil && end.Output == ""; { // without output, a command with these quirks has succeeded
	case status == statusFailed:
		end.Err = cmp.Or(end.Err, cli.ShortLine(end.Output), "failed")
	case run && end.ExitCode == nil && end.Err == "" && !silent:
		end.Err = cli.ToolUntold
	}
	return end
}

// exitCode returns the exit code of a command, or nil. It checks every field in which agents report it.
func (t *tool) exitCode() *int {
	type codes struct {
		Exit     *int `json:"exit"`
		ExitCode *int `json:"exitCode"`
		Exit_    *int `json:"exit_code"`
	}
	var out struct {
		codes
		Metadata codes `json:"metadata"`
	}
	if json.Unmarshal(t.call.Output, &out) != nil {
		return nil
	}
	return cmp.Or(out.Exit, out.ExitCode, out.Exit_, out.Metadata.Exit, out.Metadata.ExitCode, out.Metadata.Exit_)
}

// text returns the output of the tool. Agents send raw output as a string, as an object that contains a string, or as
// any other JSON value.
func (t *tool) text() string {
	text := t.call.Content.text()
	if text != "" || len(t.call.Output) == 0 || json.Unmarshal(t.call.Output, &text) == nil {
		return text
	}
	var named struct {
		Output  string `json:"output"`
		Content string `json:"content"`
		Stdout  string `json:"stdout"`
		Error   string `json:"error"`
	}
	_ = json.Unmarshal(t.call.Output, &named) // fields of other types do not matter
	return cmp.Or(named.Output, named.Content, named.Stdout, named.Error, string(t.call.Output))
}

// changes returns the file changes that the tool makes, or would make if it were allowed.
func (t *tool) changes(dir string) []cli.FileChanged {
	var list []cli.FileChanged
	for _, e := range t.edits() {
		list = append(list, e.Change(dir))
	}
	return list
}

// edits returns the edits of the tool. Some agents describe them in the tool's input.
func (t *tool) edits() []edit.Edit {
	var list []edit.Edit
	for _, c := range t.call.Content {
		if c.Type == "diff" && c.Path != "" {
			list = append(list, c.edit())
		}
	}
	if t.call.ToolKind != kindEdit {
		return list
	}
	return edit.WithInput(list, t.call.Input)
}

// edit returns the edit in a content of type "diff".
func (c toolContent) edit() edit.Edit {
	e := edit.Edit{Path: c.Path, Reported: c.Meta.Kind, After: c.NewText}
	if c.OldText != nil {
		e.Before = *c.OldText
	}
	return e
}

// paths returns the paths of the files that the tool uses.
func (t *tool) paths() []string {
	var list []string
	for _, c := range t.call.Content {
		if c.Type == "diff" {
			list = append(list, c.Path)
		}
	}
	for _, l := range t.call.Locations {
		if !slices.Contains(list, l.Path) {
			list = append(list, l.Path)
		}
	}
	return list
}
