package toolcall

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"ductor/cli"
)

// Edit is a change of one file.
type Edit struct {
	Path     string
	Reported string // kind of the change that the agent reports: "add", "delete", another word, or ""
	Before   string // old text of the file, or an excerpt of it
	After    string // new text of the file, or an excerpt of it

	hunks string // a diff that the agent sent, without its file header
	texts bool   // whether hunks is a diff from Before to After
}

// withInput adds the edits that a tool's input contains to list, which contains the edits that the tool reports in
// other ways. If list already contains an edit of the file, withInput adds no second edit. Instead, it stores the diff
// from the input in the existing edit, if the diff makes the same change.
func withInput(list []Edit, input json.RawMessage) []Edit {
	for _, given := range fromInput(input) {
		i := slices.IndexFunc(list, func(e Edit) bool { return e.Path == given.Path })
		switch {
		case i < 0:
			list = append(list, given)
		case cli.DiffMakes(given.hunks, list[i].Before, list[i].After):
			list[i].hunks, list[i].texts, list[i].Reported = given.hunks, true, cmp.Or(list[i].Reported, given.Reported)
		}
	}
	return list
}

// Change returns the change in the form in which users see it. The path is relative to dir if the file is below dir.
func (e Edit) Change(dir string) cli.FileChanged {
	return cli.FileChanged{Path: cli.Relative(dir, e.Path), Kind: e.Kind(), Diff: e.Diff()}
}

// Kind returns the kind of the change.
func (e Edit) Kind() cli.ChangeKind {
	switch {
	case e.Reported == "delete":
		return cli.FileDeleted
	case e.Reported == "add" || e.Reported == "" && e.Before == "" && (e.hunks == "" || e.texts):
		return cli.FileAdded
	}
	return cli.FileUpdated
}

// Diff returns the change in unified format, without the file header. It returns "" if the edit changes nothing.
func (e Edit) Diff() string {
	if e.hunks != "" {
		return e.hunks
	}
	before, after := e.Before, e.After
	// The texts may be excerpts of a file. A missing newline at their end then means nothing.
	if before != "" && !strings.HasSuffix(before, "\n") && !strings.HasSuffix(after, "\n") {
		before += "\n"
		if after != "" {
			after += "\n"
		}
	}
	return cli.UnifiedDiff(before, after)
}

// About reports whether the edit changes the file at path.
func (e Edit) About(dir, path string) bool {
	return cli.Absolute(dir, e.Path) == cli.Absolute(dir, path)
}

// Titled reports whether a title contains nothing but the file's name and, possibly, excerpts of the old and the new
// text.
func (e Edit) Titled(dir, title string) bool {
	name, texts, both := strings.Cut(strings.TrimPrefix(title, "Writing to "), ": ")
	before, after, arrow := strings.Cut(texts, " => ")
	return e.About(dir, name) && (!both || arrow &&
		strings.Contains(e.Before, strings.TrimSuffix(before, "...")) &&
		strings.Contains(e.After, strings.TrimSuffix(after, "...")))
}
