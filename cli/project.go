package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ProjectSettings says whether an agent may use the settings that the project brings along: its hooks, its MCP servers,
// the rights that it grants.
type ProjectSettings string

// What can become of a project's settings.
const (
	WithProject    ProjectSettings = ""        // the agent reads them as it does in a terminal; also where there are none
	WithoutProject ProjectSettings = "without" // the agent starts without them, or not at all
)

// ProjectTool is the Tool of an ApprovalAsked that is about the settings of a project.
const ProjectTool = "project settings"

// ProjectReader is a Provider whose agent reads settings in the directory it works in, which can name programs to run. It
// heeds Request.Project.
type ProjectReader interface {
	// ProjectFiles are the files that the agent reads; constant. Each is a glob of io/fs, from the directory that the file
	// stands in. What counts in a file depends on how its name ends: in one of JSON every value; in Markdown (.md) the front
	// matter, which can grant rights and name hooks; in .env the lines that change how an agent or its runtime works.
	ProjectFiles() []string
}

// Bounds of ReadProject.
const (
	projectFileBytes = 128 << 10 // of one file; a longer one cannot be allowed
	projectFileCount = 100       // of all; more cannot be allowed
)

// ReadProject finds what files of a project set, as fields that users can read. It looks in dir and in the directories
// above, up to the top of the repository or below the home directory. missing names what could not be read whole; it is
// empty if all was. No fields and nothing missing means that there are no such files. No link is followed that leads out of a directory.
func ReadProject(dir, home string, files []string) (fields []Field, missing string) {
	r := projectReading{}
	if dir == home { // what stands there is the user's own, and every agent reads it everywhere
		return nil, ""
	}
	for _, at := range projectDirs(dir, home) {
		if err := r.read(at, dir, files); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.lack("the settings in " + at)
		}
	}
	return r.fields, r.missing
}

// projectDirs are the directories that an agent looks for settings in, dir first.
func projectDirs(dir, home string) []string {
	dirs := []string{dir}
	for at := dir; ; {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return dirs
		}
		above := filepath.Dir(at)
		if above == at || above == home {
			return dirs[:1:1] // no repository: what stands above is not the project's
		}
		dirs, at = append(dirs, above), above
	}
}

type projectReading struct {
	fields  []Field
	missing string
	count   int
}

// lack records what could not be read. The first counts.
func (r *projectReading) lack(what string) { r.missing = cmp.Or(r.missing, what) }

func (r *projectReading) read(at, dir string, files []string) error {
	root, err := os.OpenRoot(at)
	if err != nil {
		return fmt.Errorf("open a project: %w", err)
	}
	defer root.Close()
	missing := map[string]bool{} // directories of this one that are not there
	for _, glob := range files {
		if in, _, ok := strings.Cut(glob, "/"); ok && !strings.ContainsAny(in, `*?[\`) {
			if _, known := missing[in]; !known {
				_, err := root.Lstat(in)
				missing[in] = errors.Is(err, fs.ErrNotExist)
			}
			if missing[in] {
				continue
			}
		}
		names := []string{glob} // Glob would pass over a link that leads out
		if strings.ContainsAny(glob, `*?[\`) {
			if names, err = fs.Glob(root.FS(), glob); err != nil {
				return fmt.Errorf("look for %s: %w", glob, err)
			}
		}
		for _, name := range names {
			r.file(root, name, shownName(at, dir, name))
		}
	}
	return nil
}

// shownName is a file as users read it: from the working directory.
func shownName(at, dir, name string) string {
	rel, err := filepath.Rel(dir, filepath.Join(at, filepath.FromSlash(name)))
	if err != nil {
		return path.Join(at, name)
	}
	return rel
}

func (r *projectReading) file(root *os.Root, name, shown string) {
	text, err := readProjectFile(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := root.Lstat(name); err == nil { // a link to what is not there yet
			r.lack(shown)
		}
		return
	case err != nil:
		r.lack(shown)
		r.fields = append(r.fields, Field{Name: shown, Value: "it cannot be read"})
		return
	}
	if r.count++; r.count > projectFileCount {
		r.lack(fmt.Sprintf("the settings: there are more than %d files", projectFileCount))
		return
	}
	for _, l := range projectLeaves(text, path.Ext(name)) {
		r.fields = append(r.fields, Field{Name: strings.TrimSuffix(shown+": "+l.Name, ": "), Value: l.Value})
	}
}

var errLongFile = errors.New("the file is too long")

func readProjectFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, fmt.Errorf("%s is no file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, projectFileBytes+1))
	if err == nil && len(text) > projectFileBytes {
		err = errLongFile
	}
	return text, err
}

// projectLeaves are the values of a file that matter.
func projectLeaves(text []byte, extension string) []Leaf {
	switch extension {
	case ".md":
		return headerLeaves(text)
	case ".env":
		return envLeaves(text)
	}
	leaves := Leaves(text)
	for i, l := range leaves {
		if l.Name == wholeInputName { // no JSON, or JSON with comments: users read it as it is
			leaves[i].Name = ""
		}
	}
	return leaves
}

// headerLeaves is the front matter of a Markdown file, whole, if it holds more than a description.
func headerLeaves(text []byte) []Leaf {
	rest, ok := bytes.CutPrefix(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), []byte("---"))
	if !ok {
		return nil
	}
	head, _, _ := bytes.Cut(rest, []byte("\n---"))
	for _, word := range []string{"hooks", "mcpServers", "mcp-servers", "allowed-tools", "tools", "permissionMode"} {
		if bytes.Contains(head, []byte(word)) {
			return []Leaf{{Value: strings.TrimSpace(string(head))}}
		}
	}
	return nil
}

// envLeaves are the lines of a .env file that set variables of agents and their runtimes. Others are the project's own.
func envLeaves(text []byte) []Leaf {
	var leaves []Leaf
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, projectFileBytes+1)
	for lines.Scan() {
		line := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "))
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); ok && steersAgent(name) {
			leaves = append(leaves, Leaf{Name: name, Value: strings.TrimSpace(value)})
		}
	}
	return leaves
}

// steersAgent says whether a variable changes how an agent, its runtime or its programs work.
func steersAgent(name string) bool {
	upper := strings.ToUpper(name)
	prefixed := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
	return slices.ContainsFunc([]string{"GEMINI_", "GOOGLE_", "NODE_", "SANDBOX", "BUILD_SANDBOX", "SEATBELT", "LD_", "DYLD_", "GIT_", "NPM_"}, prefixed) ||
		strings.HasSuffix(upper, "_PROXY") || slices.Contains([]string{"PATH", "HOME", "SHELL", "EDITOR", "VISUAL", "PAGER"}, upper)
}

// PlainJSON takes out of a settings file what JSON does not have and agents allow there: comments of both kinds, and
// commas before a closing bracket. It looks at nothing else: what is no JSON stays so.
func PlainJSON(raw []byte) []byte {
	var out bytes.Buffer
	comma := -1 // where in out a comma is that nothing followed yet
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			end := stringEnd(raw, i)
			out.Write(raw[i:end])
			i, comma = end, -1
			continue
		case c == '/' && i+1 < len(raw) && (raw[i+1] == '/' || raw[i+1] == '*'):
			i = commentEnd(raw, i)
			continue
		case c == ',':
			comma = out.Len()
		case (c == '}' || c == ']') && comma >= 0:
			out.Bytes()[comma] = ' '
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
		out.WriteByte(raw[i])
		i++
	}
	return out.Bytes()
}

// stringEnd is behind the string that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// commentEnd is behind the comment that begins at i. The end of a line is not part of it.
func commentEnd(raw []byte, i int) int {
	end, length := []byte("\n"), 0
	if raw[i+1] == '*' {
		end, length = []byte("*/"), 2
	}
	if at := bytes.Index(raw[i+2:], end); at >= 0 {
		return i + 2 + at + length
	}
	return len(raw)
}
