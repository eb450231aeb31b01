package acp

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// This file compares the input of an edit with the changes that the card shows. Agents repeat there what the changes say: the file, the
// diff, the old and the new text.

// The names of fields of an edit's input, as bareKey has them.
func pathKeys() []string { return []string{"filepath", "filename", "path", "absolutepath", "movepath"} }
func diffKeys() []string { return []string{"diff", "patch"} }

// bareKey returns the last part of a leaf's name without case and underscores.
func bareKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(name[strings.LastIndex(name, ".")+1:], "_", ""))
}

// editOf reads an edit whose input has a file and a diff instead of texts.
func editOf(input json.RawMessage) toolContent {
	c := toolContent{Type: "diff"}
	for _, l := range cli.Leaves(input) {
		switch key := bareKey(l.Name); {
		case strings.Contains(l.Name, "."):
		case slices.Contains(pathKeys(), key):
			c.Path = cmp.Or(c.Path, l.Value)
		case slices.Contains(diffKeys(), key):
			c.hunks, c.Meta.Kind = cli.Hunks(l.Value), kindOfDiff(l.Value)
		}
	}
	return c
}

// kindOfDiff is the kind of change that a diff is, as the protocol names it; empty for an update.
func kindOfDiff(diff string) string {
	heading := "\n" + strings.TrimSuffix(diff, cli.Hunks(diff))
	switch {
	case strings.Contains(heading, "\n+++ /dev/null"), strings.Contains(heading, "\n+++ b/dev/null"), strings.Contains(heading, "\ndeleted file"):
		return "delete"
	case strings.HasPrefix(cli.Hunks(diff), "@@ -0,0 "), strings.Contains(heading, "\ncreate file"), strings.Contains(heading, "\nnew file"):
		return "add"
	}
	return ""
}

// plainHeading reports whether the lines before the hunks of a diff say nothing but that it is of an ordinary file at path.
func plainHeading(diff, path string) bool {
	for line := range strings.Lines(strings.TrimSuffix(diff, cli.Hunks(diff))) {
		line = strings.TrimSpace(line)
		mark, name, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "\t")
		both := strings.TrimPrefix(line, "diff --git ")
		half := len(both) / 2
		switch {
		case line == "", strings.Trim(line, "=") == "", mark == "index":
		case line == "create file mode 100644", line == "new file mode 100644":
		case slices.Contains([]string{"Index:", "---", "+++"}, mark) && (headed(name, path) || strings.HasSuffix("/"+name, "/dev/null")):
		case both != line && headed(both[:half], path) && headed(strings.TrimSpace(both[half:]), path):
		default:
			return false
		}
	}
	return true
}

// headed reports whether the heading of a diff names the file at an absolute path: by it, or by an end of it.
func headed(name, path string) bool {
	if name = strings.TrimPrefix(name, "/"); strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/") {
		name = name[2:]
	}
	return name != "" && strings.HasSuffix(path, "/"+name)
}

// shownInput returns the fields of the input, by their names, that the changes on the card show whole.
func (t *tool) shownInput(dir string) map[string]string {
	leaves, groups, shown := cli.Leaves(t.Input), map[string]group{}, map[string]string{}
	of := func(name string) string { return name[:max(strings.LastIndex(name, "."), 0)] }
	for _, l := range leaves {
		if groups[of(l.Name)] == nil {
			groups[of(l.Name)] = group{}
		}
		groups[of(l.Name)][bareKey(l.Name)] = l.Value
	}
	edits := t.edits()
	for _, l := range leaves {
		g := groups[of(l.Name)]
		i := slices.IndexFunc(edits, func(c toolContent) bool { return g.about(dir, c.Path) })
		if i >= 0 && g.shows(dir, edits[i], bareKey(l.Name), l.Value) {
			shown[l.Name] = l.Value
		}
	}
	return shown
}

// group is an object of an input: its values by their bare names.
type group map[string]string

// about reports whether the object names a file.
func (g group) about(dir, path string) bool {
	return slices.ContainsFunc(pathKeys(), func(key string) bool { return g[key] != "" && cli.Absolute(dir, g[key]) == cli.Absolute(dir, path) })
}

// shows reports whether an edit of the file shows a value of the object.
func (g group) shows(dir string, c toolContent, key, value string) bool {
	before, after := c.before(), c.NewText
	switch {
	case c.diff() == "" || g[key] != value: // there is another of the name
		return false
	case slices.Contains(pathKeys(), key):
		return cli.Absolute(dir, value) == cli.Absolute(dir, c.Path)
	case key == "relativepath":
		return filepath.IsLocal(value) && strings.HasSuffix(cli.Absolute(dir, c.Path), "/"+value)
	case slices.Contains(diffKeys(), key):
		hunks := cli.Hunks(value)
		return plainHeading(value, cli.Absolute(dir, c.Path)) && (hunks == c.hunks || c.hunks == "" && hunks != "" && cli.DiffMakes(hunks, before, after))
	case c.hunks != "" && !c.texts:
		return false
	case key == "type":
		return value == string(c.change())
	case key == "content":
		return value == after
	case slices.Contains([]string{"oldstring", "newstring", "replaceall"}, key):
		return g.replaces(before, after)
	}
	return false
}

// replaces reports whether the object's old text, replaced by its new one, makes after of before.
func (g group) replaces(before, after string) bool {
	old, n := g["oldstring"], 1
	switch all := g["replaceall"]; {
	case old == "":
		return before == "" && after == g["newstring"]
	case all == "true":
		n = -1
	case all != "" && all != "false" && all != "null", strings.Count(before, old) != 1:
		return false
	}
	return strings.Replace(before, old, g["newstring"], n) == after
}

// entitled reports whether a title says no more than the change: the file, and perhaps the beginnings of the old and the new text.
func (c toolContent) entitled(dir, title string) bool {
	name, texts, both := strings.Cut(strings.TrimPrefix(title, "Writing to "), ": ")
	before, after, arrow := strings.Cut(texts, " => ")
	return cli.Absolute(dir, name) == cli.Absolute(dir, c.Path) && (!both || arrow &&
		strings.Contains(c.before(), strings.TrimSuffix(before, "...")) && strings.Contains(c.NewText, strings.TrimSuffix(after, "...")))
}
