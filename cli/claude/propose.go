package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"ductor/cli"
)

// snippet is a piece of a file that an edit replaces.
type snippet struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
}

// proposedChanges is what a tool would change, by its input. Claude says neither where in a file a piece is nor
// whether the file is there: lines are counted within the piece, and a file that is written whole shows its
// new content. said takes the fields that the changes show.
func proposedChanges(tool string, input json.RawMessage, dir string, said map[string]string) []cli.FileChanged {
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
	path, edit := in.Path, fileEdit{Type: "create"}
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
		edit.Content = in.Content
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
	maps.Copy(said, shown)
	return []cli.FileChanged{{Path: relative(dir, path), Kind: cli.FileUpdated, Diff: edit.diff()}}
}

// hunk is the piece's lines, those that stay as context.
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

// linesOf are the lines of s; none of nothing.
func linesOf(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
