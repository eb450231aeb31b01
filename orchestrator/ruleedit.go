package orchestrator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// editsOf are the files that an approval would write, if that is all it does.
func editsOf(p cli.ApprovalAsked) ([]string, bool) {
	fields, ok := fieldsOf(p.Input)
	if !ok || !onlyFields(fields, "file_path", "notebook_path", "path", "old_string", "new_string", "old_str", "new_str",
		"replace_all", "content", "file_text", "edits", "cell_id", "cell_type", "edit_mode", "new_source", "reason", "kind") {
		return nil, false
	}
	if len(p.Changes) == 0 && !slices.Contains([]string{"Edit", "MultiEdit", "Write", "NotebookEdit"}, p.Tool) {
		return nil, false
	}
	var paths []string
	for _, c := range p.Changes {
		if c.Kind != cli.FileAdded && c.Kind != cli.FileUpdated {
			return nil, false
		}
		paths = append(paths, c.Path)
	}
	for _, name := range []string{"file_path", "notebook_path", "path"} {
		if path, given := fields[name]; given {
			text, _ := path.(string)
			paths = append(paths, text)
		}
	}
	return paths, len(paths) > 0
}

// below says whether path is a file below dir, all links followed, and neither it nor a directory on the way
// is hidden: hidden files are what tools take their orders from.
func below(dir, path string) bool {
	if path == "" || !filepath.IsAbs(dir) {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path, dir = filepath.Clean(path), filepath.Clean(dir)
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil || !visibleBelow(dir, path) {
		return false
	}
	for at, rest := path, ""; at != dir; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if _, err := os.Lstat(at); os.IsNotExist(err) {
			continue // to be made: what counts is where its directory is
		}
		real, err := filepath.EvalSymlinks(at)
		return err == nil && visibleBelow(realDir, filepath.Join(real, rest))
	}
	return true
}

func visibleBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)),
		func(part string) bool { return strings.HasPrefix(part, ".") })
}

func allBelow(dir string, paths []string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(path string) bool { return !below(dir, path) })
}
