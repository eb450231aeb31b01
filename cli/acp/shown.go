package acp

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// This file finds input fields of an edit that users need not see, because they already see the diff. Such fields
// contain the path, the diff, the old text or the new text.

// pathKeys returns the names that agents use for path fields in an edit's input, in the form of bareKey.
func pathKeys() []string { return []string{"filepath", "filename", "path", "absolutepath", "movepath"} }
func diffKeys() []string { return []string{"diff", "patch"} }

// bareKey returns the last part of a field's name, in lower case and without underscores.
func bareKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(name[strings.LastIndex(name, ".")+1:], "_", ""))
}

// group is a JSON object within an input: its name, and the values of its fields. The keys of the map are the results
// of bareKey.
type group struct {
	name   string
	values map[string]string
}

// parentOf returns the name of the object that contains the field with the given name.
func parentOf(leaf string) string { return leaf[:max(strings.LastIndex(leaf, "."), 0)] }

// groupsOf returns all objects of an input, in order. The map contains the index of each object by its name.
func groupsOf(leaves []cli.Leaf) (all []group, at map[string]int) {
	at = map[string]int{}
	for _, l := range leaves {
		name := parentOf(l.Name)
		if _, known := at[name]; !known {
			at[name], all = len(all), append(all, group{name, map[string]string{}})
		}
		all[at[name]].values[bareKey(l.Name)] = l.Value
	}
	return all, at
}

// givenEdits returns the edits of an input that contains diffs. Other inputs contain the old and the new text.
func givenEdits(input json.RawMessage) (list []toolContent) {
	groups, _ := groupsOf(cli.Leaves(input))
	for _, g := range groups {
		c := toolContent{Type: "diff"}
		for _, key := range pathKeys() {
			c.Path = cmp.Or(c.Path, g.values[key])
		}
		diff := cmp.Or(g.values["diff"], g.values["patch"])
		c.hunks, c.Meta.Kind = cli.Hunks(diff), kindOfDiff(diff)
		if g.values["type"] == "delete" {
			c.Meta.Kind = "delete"
		}
		if filepath.IsAbs(c.Path) && c.hunks != "" {
			list = append(list, c)
		}
	}
	return list
}

// kindOfDiff returns the kind of change that a diff makes, as the protocol names it. It returns "" for an update.
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

// plainHeading reports whether the heading of a diff contains only the name of the file at path. A heading can also
// contain a rename or a changed file mode.
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

// headed reports whether a name in the heading of a diff refers to the file at the absolute path. The name can be
// relative.
func headed(name, path string) bool {
	if name = strings.TrimPrefix(name, "/"); strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/") {
		name = name[2:]
	}
	return name != "" && strings.HasSuffix(path, "/"+name)
}

// shownInput returns the input fields that users need not see, because the displayed diffs contain their values. The
// result maps field names to values.
func (t *tool) shownInput(dir string) map[string]string {
	leaves, shown := cli.Leaves(t.call.Input), map[string]string{}
	groups, at := groupsOf(leaves)
	edits := slices.DeleteFunc(t.edits(), func(c toolContent) bool { return c.diff() == "" })
	whole := group{}
	if i, has := at[""]; has {
		whole = groups[i]
	}
	rest, files := whole.values["diff"], []string{}
	for _, l := range leaves {
		g, key := groups[at[parentOf(l.Name)]], bareKey(l.Name)
		i := slices.IndexFunc(edits, func(c toolContent) bool { return g.about(dir, c.Path) })
		if i < 0 || !g.shows(dir, edits[i], key, l.Value) {
			continue
		}
		shown[l.Name] = l.Value
		switch {
		case key == "relativepath":
			files = append(files, l.Value)
		case key == "patch" && g.name != "":
			rest = strings.Replace(rest, l.Value, "", 1)
		}
	}
	// If an edit changes several files, its field "diff" contains the patches of all files.
	if len(files) > 0 && len(files) == len(edits) && strings.TrimSpace(rest) == "" {
		shown["diff"], shown["filepath"] = whole.values["diff"], strings.Join(files, ", ")
	}
	return shown
}

// about reports whether one of the object's fields contains this path.
func (g group) about(dir, path string) bool {
	return slices.ContainsFunc(pathKeys(), func(key string) bool {
		return g.values[key] != "" && cli.Absolute(dir, g.values[key]) == cli.Absolute(dir, path)
	})
}

// shows reports whether a field of the object contains only what the diff of c already shows.
func (g group) shows(dir string, c toolContent, key, value string) bool {
	before, after := c.before(), c.NewText
	switch {
	case g.values[key] != value: // a different field has the same key
		return false
	case slices.Contains(pathKeys(), key):
		return cli.Absolute(dir, value) == cli.Absolute(dir, c.Path)
	case key == "relativepath":
		return filepath.IsLocal(value) && strings.HasSuffix(cli.Absolute(dir, c.Path), "/"+value)
	case slices.Contains(diffKeys(), key):
		hunks := cli.Hunks(value)
		return plainHeading(value, cli.Absolute(dir, c.Path)) && (hunks == c.hunks || c.hunks == "" && hunks != "" && cli.DiffMakes(hunks, before, after))
	case key == "type":
		return value == string(c.change())
	case c.hunks != "" && !c.texts:
		return false
	case key == "content":
		return value == after
	case slices.Contains([]string{"oldstring", "newstring", "replaceall"}, key):
		return g.replaces(before, after)
	}
	return false
}

// replaces reports whether replacing the object's old text by its new text turns before into after.
func (g group) replaces(before, after string) bool {
	old, n := g.values["oldstring"], 1
	switch all := g.values["replaceall"]; {
	case old == "":
		return before == "" && after == g.values["newstring"]
	case all == "true":
		n = -1
	case all != "" && all != "false" && all != "null", strings.Count(before, old) != 1:
		return false
	}
	return strings.Replace(before, old, g.values["newstring"], n) == after
}

// entitled reports whether a title contains only the name of the file, optionally with the first words of the old and
// the new text.
func (c toolContent) entitled(dir, title string) bool {
	name, texts, both := strings.Cut(strings.TrimPrefix(title, "Writing to "), ": ")
	before, after, arrow := strings.Cut(texts, " => ")
	return cli.Absolute(dir, name) == cli.Absolute(dir, c.Path) && (!both || arrow &&
		strings.Contains(c.before(), strings.TrimSuffix(before, "...")) && strings.Contains(c.NewText, strings.TrimSuffix(after, "...")))
}
