package toolcall

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// pathKeys returns the names that agents use for path fields in an edit's input, in the form of bareKey.
func pathKeys() []string { return []string{"filepath", "filename", "path", "absolutepath", "movepath"} }

// bareKey returns the last part of a field's name, in lower case and without underscores.
func bareKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(name[strings.LastIndex(name, ".")+1:], "_", ""))
}

// group is a JSON object within an input: its name, and the values of its fields. The keys of values are results of
// bareKey.
type group struct {
	name   string
	values map[string]string
}

// parentOf returns the name of the object that contains the field with the given name.
func parentOf(leaf string) string { return leaf[:max(strings.LastIndex(leaf, "."), 0)] }

// groupsOf returns all objects of an input, in order. It also returns the index of each object by its name.
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

// fromInput returns the edits that a tool's input describes, either as diffs or as old and new text.
func fromInput(input json.RawMessage) (list []Edit) {
	groups, _ := groupsOf(cli.Leaves(input))
	for _, g := range groups {
		diff := cmp.Or(g.values["diff"], g.values["patch"])
		e := Edit{Reported: kindOfDiff(diff), hunks: cli.Hunks(diff)}
		for _, key := range pathKeys() {
			e.Path = cmp.Or(e.Path, g.values[key])
		}
		if g.values["type"] == "delete" {
			e.Reported = "delete"
		}
		if filepath.IsAbs(e.Path) && e.hunks != "" {
			list = append(list, e)
		}
	}
	return list
}

// kindOfDiff returns the kind of change that a diff makes, as the protocol names it. It returns "" for an update.
func kindOfDiff(diff string) string {
	heading := "\n" + strings.TrimSuffix(diff, cli.Hunks(diff))
	switch {
	case strings.Contains(heading, "\n+++ /dev/null"), strings.Contains(heading, "\n+++ b/dev/null"),
		strings.Contains(heading, "\ndeleted file"):
		return "delete"
	case strings.HasPrefix(cli.Hunks(diff), "@@ -0,0 "), strings.Contains(heading, "\ncreate file"),
		strings.Contains(heading, "\nnew file"):
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
		case slices.Contains([]string{"Index:", "---", "+++"}, mark) &&
			(namesFile(name, path) || strings.HasSuffix("/"+name, "/dev/null")):
		case both != line && namesFile(both[:half], path) && namesFile(strings.TrimSpace(both[half:]), path):
		default:
			return false
		}
	}
	return true
}

// namesFile reports whether a name in the header of a diff refers to the file at the absolute path. The name can be
// relative.
func namesFile(name, path string) bool {
	if name = strings.TrimPrefix(name, "/"); strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/") {
		name = name[2:]
	}
	return name != "" && strings.HasSuffix(path, "/"+name)
}

// ShownInput returns the fields of the input that users already see in the diffs of the edits. These contain the path,
// the diff, the old text or the new text. The keys of the map are the names of the fields.
func (c *Call) ShownInput(dir string) map[string]string {
	leaves, shown := cli.Leaves(c.Input), map[string]string{}
	groups, at := groupsOf(leaves)
	edits := slices.DeleteFunc(c.Edits(), func(e Edit) bool { return e.Diff() == "" })
	whole := group{}
	if i, has := at[""]; has {
		whole = groups[i]
	}
	rest, files := whole.values["diff"], []string{}
	for _, l := range leaves {
		g, key := groups[at[parentOf(l.Name)]], bareKey(l.Name)
		i := slices.IndexFunc(edits, func(e Edit) bool { return g.about(dir, e) })
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
	// For an edit of several files, the field "diff" joins the patches of these files. If users see each patch, they
	// see the whole field.
	if len(files) > 0 && len(files) == len(edits) && strings.TrimSpace(rest) == "" {
		shown["diff"], shown["filepath"] = whole.values["diff"], strings.Join(files, ", ")
	}
	return shown
}

// about reports whether a field of the object contains the path of the edit.
func (g group) about(dir string, e Edit) bool {
	return slices.ContainsFunc(pathKeys(), func(key string) bool {
		return g.values[key] != "" && e.About(dir, g.values[key])
	})
}

// shows reports whether a field of the object only repeats a part of the edit's diff.
func (g group) shows(dir string, e Edit, key, value string) bool {
	switch {
	case g.values[key] != value: // a different field has the same key
		return false
	case slices.Contains(pathKeys(), key):
		return e.About(dir, value)
	case key == "relativepath":
		return filepath.IsLocal(value) && strings.HasSuffix(cli.Absolute(dir, e.Path), "/"+value)
	case key == "diff", key == "patch":
		return plainHeading(value, cli.Absolute(dir, e.Path)) && e.makes(cli.Hunks(value))
	case key == "type":
		return value == string(e.Kind())
	case e.hunks != "" && !e.texts:
		return false
	case key == "content":
		return value == e.After
	case slices.Contains([]string{"oldstring", "newstring", "replaceall"}, key):
		return g.replaces(e.Before, e.After)
	}
	return false
}

// makes reports whether the diff in hunks describes the change that the edit makes.
func (e Edit) makes(hunks string) bool {
	return hunks == e.hunks || e.hunks == "" && hunks != "" && cli.DiffMakes(hunks, e.Before, e.After)
}

// replaces reports whether the object describes the change from before to after. This is the case if replacing the
// object's old text by its new text turns before into after.
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
