package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/cli/turn"
)

type toolCall struct {
	message string // ID of the message that contains the call
	name    string
	input   json.RawMessage
	err     string // the error if the call failed
	denied  bool   // ductor denied the call and told the model why
}

func isToolUse(kind string) bool {
	return kind == "tool_use" || kind == "server_tool_use" || kind == "mcp_tool_use"
}

type tools struct {
	em    *turn.Emitter
	plan  *plan
	dir   string
	calls map[cli.ToolID]toolCall
}

// start emits the start of a tool call, unless it has already emitted this start. A call with the same ID in a later
// message is another call, because not every model behind Claude Code creates unique IDs.
func (t *tools) start(message string, b block, parent string) {
	id := cli.ToolID(b.ID)
	if call, known := t.calls[id]; known && call.message == message || id == "" {
		return
	}
	if keepsPlan(b.Name) || t.em.ToolStart(cli.ToolStarted{
		ID: id, Name: b.Name, Title: toolTitle(b.Name, b.Input, t.dir), Input: b.Input,
		Parent: cli.ToolID(parent),
	}) {
		t.calls[id] = toolCall{message: message, name: b.Name, input: b.Input}
	}
}

// drop ends a tool call in a message that Claude has abandoned. Claude itself reports no end of such a call.
func (t *tools) drop(id string) {
	if _, known := t.calls[cli.ToolID(id)]; known {
		t.em.ToolEnd(cli.ToolEnded{ID: cli.ToolID(id), Err: cli.ToolGivenUp})
	}
}

func (t *tools) end(b block, structured json.RawMessage) {
	id := cli.ToolID(b.ToolUseID)
	call, known := t.calls[id]
	if !known {
		return
	}
	end := cli.ToolEnded{ID: id, Output: resultText(b.Content)}
	if b.IsError {
		if end.Err = toolError(end.Output); call.denied {
			end.Err = cli.ToolDenied
		}
		call.err = end.Err
		t.calls[id] = call
	} else if keepsPlan(call.name) {
		if t.plan.change(call.name, call.input, end.Output) {
			t.em.Pass(t.plan.changed())
		}
	} else if change, ok := fileChange(call, structured, t.dir); ok {
		t.em.Pass(change)
	}
	if call.name == "Bash" {
		end.ExitCode = exitCode(b.IsError, end.Output, structured)
		if !b.IsError && end.Output == "(Bash completed with no output)" { // Claude Code writes this text for the model
			end.Output = ""
		}
	}
	if !b.IsError && inBackground(structured) {
		end.Err = cli.ToolGoesOn
	}
	t.em.ToolEnd(end)
}

// unexplained is the message for the model if the user denied a call without a reason.
const unexplained = "The user denied this without giving a reason."

// toolError returns the error of a tool call, for users. It replaces texts that Claude Code wrote for the model.
func toolError(output string) string {
	output, _ = strings.CutPrefix(output, "<tool_use_error>")
	switch {
	case output == unexplained:
		return cli.ToolDenied
	case strings.HasPrefix(output, "The user doesn't want to "): // the call was interrupted
		return cli.ToolCutShort
	}
	return cmp.Or(oneLine(strings.TrimSuffix(output, "</tool_use_error>")), cli.ToolFailed)
}

// resultText returns the text of a tool's result. For pictures and other content, it returns only the type.
func resultText(content json.RawMessage) string {
	m := message{Content: content}
	var parts []string
	for _, b := range m.blocks() {
		switch {
		case b.Type == "text":
			parts = append(parts, b.Text)
		case b.Type != "":
			parts = append(parts, "["+b.Type+"]")
		}
	}
	return strings.Join(parts, "\n")
}

var exitLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:Error: )?Exit code (\d{1,9})(?:\n|$)`) })

// exitCode returns the exit code of a shell command, or nil if the command was rejected, interrupted or moved to the
// background. Claude reports codes other than 0 only in the text of the output.
func exitCode(failed bool, output string, structured json.RawMessage) *int {
	if failed {
		return cli.NumberIn(exitLine(), output)
	}
	var bash struct {
		Interrupted bool `json:"interrupted"`
	}
	if json.Unmarshal(structured, &bash) != nil || bash.Interrupted || inBackground(structured) {
		return nil
	}
	return new(int)
}

// inBackground reports whether a command was moved to the background.
func inBackground(structured json.RawMessage) bool {
	var bash struct {
		Background string `json:"backgroundTaskId"`
	}
	return json.Unmarshal(structured, &bash) == nil && bash.Background != ""
}

const maxTitle = 200

// toolTitle describes a tool call for users, in one line. It shows paths inside dir relative to dir.
func toolTitle(name string, input json.RawMessage, dir string) string {
	fields := cli.TextsOf(input)
	for _, key := range titleKeys(name) {
		if value := fields[key]; value != "" {
			if strings.HasSuffix(key, "path") {
				value = cli.Relative(dir, value)
			}
			return oneLine(value)
		}
	}
	if name == toolQuestion {
		return oneLine(firstQuestion(input))
	}
	return ""
}

// titleKeys returns the input fields that can describe a tool call, the most descriptive field first.
func titleKeys(name string) []string {
	switch name {
	case "Bash":
		return []string{"command", "description"}
	case "Task", "Agent":
		return []string{"description", "prompt"}
	case "Grep", "Glob":
		return []string{"pattern", "path"}
	case toolExitPlan:
		return []string{"plan"}
	}
	return []string{"file_path", "notebook_path", "path", "command", "pattern", "query", "url", "skill",
		"subject", "description", "prompt"}
}

func firstQuestion(input json.RawMessage) string {
	var in struct {
		Questions []struct {
			Question string `json:"question"`
		} `json:"questions"`
	}
	if json.Unmarshal(input, &in) != nil || len(in.Questions) == 0 {
		return ""
	}
	return in.Questions[0].Question
}

// oneLine replaces each run of white space in s by a space, and shortens the result.
func oneLine(s string) string {
	const enough = 4 * maxTitle // avoids scanning all of a huge input
	return cli.OneLine(strings.ToValidUTF8(cli.Shorten(s, enough), ""), maxTitle)
}

// fileEdit is the structured result of the tools Edit, MultiEdit and Write.
type fileEdit struct {
	Type    string `json:"type"` // "create" for a new file; empty for Edit
	Path    string `json:"filePath"`
	Content string `json:"content"`
	Patch   []hunk `json:"structuredPatch"`
}

type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// fileChange returns the change that a tool call made to a file, or false if it changed none. result is Claude's
// structured result. Without a result, fileChange uses the input of the call, and there is no diff.
func fileChange(call toolCall, result json.RawMessage, dir string) (cli.FileChanged, bool) {
	switch call.name {
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
	default:
		return cli.FileChanged{}, false
	}
	var edit fileEdit
	if json.Unmarshal(result, &edit) != nil || edit.Path == "" {
		return changeFromInput(call, dir)
	}
	kind := cli.FileUpdated
	if edit.Type == "create" {
		kind = cli.FileAdded
	}
	return cli.FileChanged{Path: cli.Relative(dir, edit.Path), Kind: kind, Diff: edit.diff()}, true
}

func changeFromInput(call toolCall, dir string) (cli.FileChanged, bool) {
	fields := cli.TextsOf(call.input)
	path := cmp.Or(fields["file_path"], fields["notebook_path"])
	return cli.FileChanged{Path: cli.Relative(dir, path), Kind: cli.FileUpdated}, path != ""
}

// diff returns the change in unified format, without the file header.
func (e fileEdit) diff() string {
	hunks := e.Patch
	if len(hunks) == 0 && e.Type == "create" && e.Content != "" {
		hunks = []hunk{wholeFile(e.Content)}
	}
	var b strings.Builder
	for _, h := range hunks {
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		for _, l := range h.Lines {
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// wholeFile returns a hunk that adds content to an empty file.
func wholeFile(content string) hunk {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	h := hunk{NewStart: 1, NewLines: len(lines), Lines: make([]string, 0, len(lines)+1)}
	for _, l := range lines {
		h.Lines = append(h.Lines, "+"+l)
	}
	if !strings.HasSuffix(content, "\n") {
		h.Lines = append(h.Lines, `\ No newline at end of file`)
	}
	return h
}

// snippet is one replacement of an edit: the old text and the new text.
type snippet struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
}

// proposedChanges returns the file changes that a tool would make according to its input. It also adds the input fields
// that users can see in these changes to shownFields.
//
// The input does not contain the position of a replaced text in the file, so line numbers start at 1. The input does
// not say whether a written file exists, so the change adds the whole new content.
func proposedChanges(tool string, input json.RawMessage, dir string, shownFields map[string]string) []cli.FileChanged {
	var in struct {
		Path     string    `json:"file_path"`
		Notebook string    `json:"notebook_path"`
		Content  string    `json:"content"`
		Source   string    `json:"new_source"`
		Edits    []snippet `json:"edits"`
		snippet
	}
	if tolerant(json.Unmarshal(input, &in)) != nil {
		return nil
	}
	path, edit, kind := in.Path, fileEdit{Type: "create"}, cli.FileUpdated
	shown := map[string]string{"file_path": path}
	switch tool {
	case "Edit":
		edit.Patch = []hunk{in.hunk()}
		shown["old_string"], shown["new_string"] = in.Old, in.New
	case "MultiEdit":
		for i, e := range in.Edits {
			edit.Patch = append(edit.Patch, e.hunk())
			at := fmt.Sprintf("edits[%d].", i)
			shown[at+"old_string"], shown[at+"new_string"] = e.Old, e.New
		}
	case "Write":
		edit.Content, kind = in.Content, cli.FileAdded
		shown["content"] = in.Content
	case "NotebookEdit":
		path, edit.Content = in.Notebook, in.Source
		shown = map[string]string{"notebook_path": path, "new_source": in.Source}
	default:
		return nil
	}
	if path == "" {
		return nil
	}
	maps.Copy(shownFields, shown)
	return []cli.FileChanged{{Path: cli.Relative(dir, path), Kind: kind, Diff: edit.diff()}}
}

// hunk returns the replacement as a hunk of a diff. Equal lines at the start and the end become context.
func (s snippet) hunk() hunk {
	was, is := linesOf(s.Old), linesOf(s.New)
	head := 0
	for head < len(was) && head < len(is) && was[head] == is[head] {
		head++
	}
	tail := 0
	for tail < len(was)-head && tail < len(is)-head && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	h := hunk{OldStart: min(1, len(was)), OldLines: len(was), NewStart: min(1, len(is)), NewLines: len(is)}
	for _, part := range []struct {
		sign  string
		lines []string
	}{{" ", was[:head]}, {"-", was[head : len(was)-tail]}, {"+", is[head : len(is)-tail]}, {" ", was[len(was)-tail:]}} {
		for _, l := range part.lines {
			h.Lines = append(h.Lines, part.sign+l)
		}
	}
	return h
}

// linesOf returns the lines of s, or nil if s is empty.
func linesOf(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
