package picture

import (
	"strconv"
	"strings"
)

// Words contains the labels of a diff picture.
type Words struct{ New, Deleted, Binary, Was, Mode, Line string }

// Diff draws a unified diff for a phone. most limits the rows. If the diff has more rows, or if the font lacks a
// character, Diff returns false, and the caller sends the diff as a file.
func Diff(theme Theme, unified string, most int, words Words) (data []byte, ok bool, err error) {
	const perColumn = 8 // bytes; a longer diff cannot fit, so skip the layout
	if len(unified) > perColumn*most*PhoneColumns || !Drawable(unified) || strings.Count(unified, "\n") > 2*most {
		return nil, false, nil
	}
	rows := diffRows(unified, words)
	if len(rows) == 0 || len(rows) > most {
		return nil, false, nil
	}
	data, err = Draw(theme, PhoneColumns, rows)
	return data, err == nil, err
}

// diffFile is one file of a diff.
type diffFile struct {
	name           string
	note           string // shown instead of lines
	added, removed int
	rows           []Line
}

// diffRows lays out a diff: a heading for each file, and its lines. Only the first line of each hunk has a line
// number.
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

// addLine adds a line of a hunk.
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

// Header lines that git writes before the hunks of a file.
const (
	renameFrom = "rename from "
	renameTo   = "rename to "
	newMode    = "new mode "
)

// head parses a line before the first hunk of a file.
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

// nameOf parses the file name in "a/x b/x".
func nameOf(both string) string {
	if half := len(both) / 2; len(both)%2 == 1 && half > 2 && both[half] == ' ' {
		return unquoted(both[half+1:], "b/")
	}
	return both
}

// hunkOf describes where a hunk starts: "@@ -1,4 +10,5 @@ func main() {". It returns "" for the start of a file.
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
