package approval

import (
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// editFields are what an edit may say. A reason, a grant, a warning or anything unknown is more than an edit.
func editFields() []string {
	return []string{
		"file_path", "notebook_path", "path", "old_string", "new_string", "old_str", "new_str", "replace_all", "content",
		"file_text", "edits", "cell_id", "cell_type", "edit_mode", "new_source", "kind",
		"fileName", "resolvedPath", "diff", "newFileContents", "fileEdits", "intention", "canOfferSessionApproval",
	}
}

// editsOf are the files that an approval would write, if that is all it does.
func editsOf(p cli.ApprovalAsked) ([]string, bool) {
	fields, ok := fieldsOf(p.Input)
	if !ok || !onlyFields(fields, editFields()...) || needsMore(p, fields) {
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
	for _, name := range []string{"file_path", "notebook_path", "path", "fileName", "resolvedPath"} {
		if path, given := fields[name]; given {
			text, _ := path.(string)
			paths = append(paths, text)
		}
	}
	more, ok := copilotEdits(fields["fileEdits"])
	paths = append(paths, more...)
	return paths, ok && len(paths) > 0
}

// copilotEdits are the files of Copilot's list of edits, each as it was and as it will be; false if one is deleted, or says
// something else.
func copilotEdits(list any) (paths []string, ok bool) {
	edits, isList := list.([]any)
	for _, e := range edits {
		edit, _ := e.(map[string]any)
		if edit["after"] == nil || !onlyFields(edit, "before", "after") {
			return nil, false
		}
		for _, file := range edit {
			fields, _ := file.(map[string]any)
			path, _ := fields["path"].(string)
			if file != nil {
				paths = append(paths, path) // an empty one is below no directory
			}
		}
	}
	return paths, isList || list == nil
}

// needsMore says whether the agent gives a reason to ask: it needs more rights, or takes the file for a sensitive one. What
// Copilot intends with each tool is no such reason.
func needsMore(p cli.ApprovalAsked, fields map[string]any) bool {
	intention, _ := fields["intention"].(string)
	return p.Reason != "" && strings.Join(strings.Fields(p.Reason), " ") != strings.Join(strings.Fields(intention), " ")
}

// editsBelow says whether all that an approval does is to write files below its directory that are not hidden. Rules and the
// permission mode go by it alike.
func editsBelow(a orchestrator.ApprovalRequest) bool {
	if a.Request == nil {
		return false
	}
	paths, ok := editsOf(*a.Request)
	return ok && !slices.ContainsFunc(paths, func(path string) bool { return !cli.VisibleBelow(a.Dir, path) })
}
