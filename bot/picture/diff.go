package picture

import (
	"strconv"
	"strings"
)

// Words contains the labels in the picture of a diff, translated for the user.
type Words struct{ New, Deleted, Binary, Was, Mode, Line string }

// Diff draws a unified diff for a phone. It returns false if the diff needs more than maxRows rows, or contains a
// character that the font lacks. The caller should then send the diff as a file.
func Diff(theme Theme, unified string, maxRows int, words Words) (data []byte, ok bool, err error) {
	const bytesPerCell = 8 // up to 4 bytes for the character in a cell, and 4 for text that the picture omits
	if len(unified) > bytesPerCell*maxRows*PhoneColumns || !Drawable(unified) ||
		strings.Count(unified, "\n") > 2*maxRows {
		return nil, false, nil
	}
	rows := diffRows(unified, words)
	if len(rows) == 0 || len(rows) > maxRows {
		return nil, false, nil
	}
	data, err = Draw(theme, PhoneColumns, rows)
	return data, err == nil, err
}

type diffFile struct {
	name           string
	note           string // text next to the name, such as "new"
	added, removed int
	rows           []Line
}

// diffRows returns the lines of the picture: a heading for each file, and the lines of its diff. Only the start of a
// hunk has a line number.
func diffRows(unified string, words Words) (rows []Line) {
	for i, f := range splitDiff(unified, words) {
		if i > 0 {
			rows = append(rows, Line{})
		}
		heading := Line{Below: Header, Runs: []Run{{Text: f.name, Weight: Bold}}}
		if f.added > 0 {
			heading.Runs = append(heading.Runs, Run{Text: " +" + strconv.Itoa(f.added), Color: Added, Weight: Bold})
		}
		if f.removed > 0 {
			heading.Runs = append(heading.Runs, Run{Text: " -" + strconv.Itoa(f.removed), Color: Removed, Weight: Bold})
		}
		if f.note != "" {
			heading.Runs = append(heading.Runs, Run{Text: " " + f.note, Color: Muted})
		}
		rows = append(rows, Wrap(heading, PhoneColumns)...)
		rows = append(rows, f.rows...)
	}
	return rows
}

func splitDiff(unified string, words Words) (files []diffFile) {
	inHunk := false
	for line := range strings.SplitSeq(strings.TrimSuffix(unified, "\n"), "\n") {
		if name, ok := strings.CutPrefix(line, "diff --git "); ok {
			files, inHunk = append(files, diffFile{name: nameOf(name)}), false
			continue
		}
		if len(files) == 0 {
			files = append(files, diffFile{})
		}
		f := &files[len(files)-1]
		switch {
		case strings.HasPrefix(line, "@@ "):
			inHunk = true
			if where := hunkOf(line, words); where != "" {
				f.rows = append(f.rows, Wrap(Line{Runs: []Run{{Text: where, Color: Accent}}}, PhoneColumns)...)
			}
		case inHunk:
			f.addLine(line)
		default:
			f.head(line, words)
		}
	}
	return files
}

func (f *diffFile) addLine(line string) {
	row, mark := Line{}, Run{Text: "  "}
	text := strings.TrimSuffix(line, "\r")
	switch {
	case strings.HasPrefix(line, "+"):
		f.added++
		row.Below, mark = AddedBack, Run{Text: "+ ", Color: Added, Weight: Bold}
	case strings.HasPrefix(line, "-"):
		f.removed++
		row.Below, mark = RemovedBack, Run{Text: "- ", Color: Removed, Weight: Bold}
	case strings.HasPrefix(line, `\`):
		f.rows = append(f.rows, Wrap(Line{Runs: []Run{{Text: "  " + line[1:], Color: Muted}}}, PhoneColumns)...)
		return
	}
	ink := Muted
	if row.Below != Back {
		ink = Ink
	}
	if text != "" {
		text = text[1:]
	}
	row.Runs = []Run{mark, {Text: text, Color: ink}}
	f.rows = append(f.rows, Wrap(row, PhoneColumns, Run{Text: "  "})...)
}

const (
	renameFrom = "rename from "
	renameTo   = "rename to "
	newMode    = "new mode "
)

// head parses a header line of a file, before its first hunk.
func (f *diffFile) head(line string, words Words) {
	old, isOld := strings.CutPrefix(line, "--- ")
	name, isNew := strings.CutPrefix(line, "+++ ")
	switch {
	case isNew && name != "/dev/null":
		f.name = unquoted(name, "b/")
	case isOld && old != "/dev/null" && f.name == "":
		f.name = unquoted(old, "a/")
	case strings.HasPrefix(line, "new file"):
		f.note = words.New
	case strings.HasPrefix(line, "deleted file"):
		f.note = words.Deleted
	case strings.HasPrefix(line, renameFrom):
		f.note = words.Was + " " + line[len(renameFrom):]
	case strings.HasPrefix(line, renameTo):
		f.name = line[len(renameTo):]
	case strings.HasPrefix(line, newMode) && len(line) > len(newMode)+3:
		f.note = strings.TrimSpace(f.note + " " + words.Mode + " " + line[len(newMode)+3:])
	case strings.HasPrefix(line, "Binary files"):
		f.note = strings.TrimSpace(f.note + " " + words.Binary)
	}
}

func unquoted(name, prefix string) string {
	name = strings.TrimSuffix(name, "\t")
	if plain, err := strconv.Unquote(name); err == nil {
		name = plain
	}
	return strings.TrimPrefix(name, prefix)
}

// nameOf returns the file name in "a/x b/x", which follows "diff --git".
func nameOf(both string) string {
	if half := len(both) / 2; len(both)%2 == 1 && half > 2 && both[half] == ' ' {
		return unquoted(both[half+1:], "b/")
	}
	return both
}

// hunkOf returns a line that shows where a hunk begins. line has the form "@@ -1,4 +10,5 @@ func main() {". It returns
// "" if the hunk is at the start of a file.
func hunkOf(line string, words Words) string {
	where, what, _ := strings.Cut(strings.TrimPrefix(line, "@@ "), " @@")
	_, now, _ := strings.Cut(where, "+")
	first, _, _ := strings.Cut(now, ",")
	what = strings.TrimSpace(what)
	switch {
	case what == "" && (first == "0" || first == "1"):
		return ""
	case what == "":
		return words.Line + " " + first
	}
	return words.Line + " " + first + " · " + what
}
