package claude

import (
	"encoding/json"
	"fmt"
	"strings"

	"ductor/cli"
)

// fileEdit is what Claude reports of a finished Edit, MultiEdit or Write.
type fileEdit struct {
	Type     string  `json:"type"` // "create" for a new file; Edit has none
	Path     string  `json:"filePath"`
	Content  string  `json:"content"`
	Original *string `json:"originalFile"`
	Patch    []hunk  `json:"structuredPatch"`
}

type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// fileChange is the change that a tool call made; false if it made none. result is the structured result
// where Claude gave one, else the change is taken from the call's input, without a diff.
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
	return cli.FileChanged{Path: relative(dir, edit.Path), Kind: kind, Diff: edit.diff()}, true
}

func changeFromInput(call toolCall, dir string) (cli.FileChanged, bool) {
	fields := stringFields(call.input)
	path := fields["file_path"]
	if path == "" {
		path = fields["notebook_path"]
	}
	return cli.FileChanged{Path: relative(dir, path), Kind: cli.FileUpdated}, path != ""
}

// diff is the change in unified form, without the file header.
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

// wholeFile is the hunk that adds content to nothing.
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
