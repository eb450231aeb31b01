package cli

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// ProjectSettings says whether an agent may use the settings that the project brings along: its hooks, its MCP servers,
// the rights that it grants.
type ProjectSettings string

// What can become of a project's settings. An agent uses those of WithProject alone.
const (
	WithoutProject ProjectSettings = ""        // there are some, and the agent starts without them or not at all
	EmptyProject   ProjectSettings = "none"    // there are none that ductor knows of; the agent starts without any
	WithProject    ProjectSettings = "allowed" // a user saw and allowed exactly what is there
)

// ProjectTool is the Tool of an ApprovalAsked that is about the settings of a project.
const ProjectTool = "project settings"

// ProjectReader is a Provider whose agent reads settings in the directory it works in, which can name programs to run. It
// heeds Request.Project.
type ProjectReader interface {
	// ProjectFiles are the files that the agent reads, from the directory that they stand in; constant. A name that ends in a
	// slash is a directory with all that is below it. What users see of a file depends on how its name ends: of JSON every value;
	// of Markdown the front matter and the commands within the text; of .env the lines that change how an agent or its runtime
	// works; of TOML the text.
	ProjectFiles() []string
}

// Bounds of ReadProject.
const (
	projectFileBytes  = 128 << 10 // of one file; a longer one cannot be allowed
	projectFileCount  = 500       // of all; more cannot be allowed
	projectShownBytes = 1 << 20   // of all fields; more cannot be allowed
)

// ReadProject finds what files of a project set, as fields that users can read. The fields differ if a file does. It looks in dir
// and in all directories above but the home directory, as agents do, and for a worktree also where its repository is. missing names what could not be read whole; it is
// empty if all was. No fields and nothing missing means that there are no such files. No link is followed that leads out of a directory.
func ReadProject(dir, home string, files []string) (fields []Field, missing string) {
	r := projectReading{dir: RealPath(dir)}
	home = RealPath(home)
	if r.dir == home { // what stands there is the user's own, and every agent reads it everywhere
		return nil, ""
	}
	seen := map[string]bool{home: true}
	for _, start := range []string{r.dir, mainCheckout(r.dir)} {
		for at := start; ; at = filepath.Dir(at) {
			if !seen[at] {
				seen[at] = true
				r.read(at, files)
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return r.fields, r.missing
}

// mainCheckout is where the repository of a worktree has its first checkout, from which agents read settings too. It is dir itself for
// what is no worktree.
func mainCheckout(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if to, is := strings.CutPrefix(shortFile(filepath.Join(at, ".git")), "gitdir:"); is {
			git := from(at, strings.TrimSpace(to))
			if common := shortFile(filepath.Join(git, "commondir")); common != "" {
				git = from(git, common)
			}
			return RealPath(strings.TrimSuffix(git, "/.git"))
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// from is a path, from a directory if it is relative.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// shortFile is the text of a small file; empty for anything else.
func shortFile(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

type projectReading struct {
	dir     string
	fields  []Field
	missing string
	count   int // files
	bytes   int // of fields
}

// lack records what could not be read. The first counts.
func (r *projectReading) lack(what string) { r.missing = cmp.Or(r.missing, what) }

func (r *projectReading) read(at string, files []string) {
	root, err := os.OpenRoot(at)
	if err != nil { // an agent may still read what it knows the name of
		for _, name := range files {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				r.lack(r.shown(at, name))
			}
		}
		return
	}
	defer root.Close()
	missing := map[string]bool{} // first parts of names that are not there, which is most
	for _, name := range files {
		first, _, _ := strings.Cut(name, "/")
		if _, known := missing[first]; !known {
			_, err := root.Lstat(first)
			missing[first] = errors.Is(err, fs.ErrNotExist)
		}
		if missing[first] {
			continue
		}
		if name, all := strings.CutSuffix(name, "/"); all {
			r.below(root, name)
		} else {
			r.file(root, name)
		}
	}
}

// shown is a file as users read it: from the working directory.
func (r *projectReading) shown(at, name string) string {
	rel, err := filepath.Rel(r.dir, filepath.Join(at, filepath.FromSlash(name)))
	if err != nil {
		return path.Join(at, name)
	}
	return rel
}

// below reads all files below a directory. A link to another directory is not followed.
func (r *projectReading) below(root *os.Root, dir string) {
	if _, err := root.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		r.file(root, dir) // a link to nothing yet, or nothing
		return
	}
	_ = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error { // errors are missing files
		switch {
		case err != nil:
			r.lack(r.shown(root.Name(), name))
		case r.count > projectFileCount:
			return fs.SkipAll
		case !d.IsDir():
			r.file(root, name)
		}
		return nil
	})
}

func (r *projectReading) file(root *os.Root, name string) {
	shown := r.shown(root.Name(), name)
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
		if r.bytes += len(l.Name) + len(l.Value); r.bytes > projectShownBytes {
			r.lack("the settings: they are too long")
			return
		}
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

// projectLeaves are the values of a file that matter. They differ if the file does, but for a .env file.
func projectLeaves(text []byte, extension string) []Leaf {
	switch extension {
	case ".env":
		return envLeaves(text)
	case ".json", ".toml":
		return wholeLeaves(text)
	case ".md":
		return append(markdownLeaves(text), digestLeaf(text))
	}
	return []Leaf{digestLeaf(text)}
}

// digestLeaf stands for a text that users can look at in the project.
func digestLeaf(text []byte) Leaf {
	return Leaf{Value: fmt.Sprintf("%d bytes, sha256 %x", len(text), sha256.Sum256(text))}
}

// wholeLeaves are the values of JSON. Any other text, JSON with comments too, is one value, which users read as it is.
func wholeLeaves(text []byte) []Leaf {
	leaves := Leaves(text)
	for i, l := range leaves {
		if l.Name == wholeInputName {
			leaves[i].Name = ""
		}
	}
	return leaves
}

// markdownLeaves are the values of a file's front matter, as a parser of YAML reads them, and the lines of the text whose commands
// an agent runs when it reads the file. Front matter that is no YAML is one value.
func markdownLeaves(text []byte) []Leaf {
	var leaves []Leaf
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if rest, ok := bytes.CutPrefix(text, []byte("---")); ok {
		head, body, _ := bytes.Cut(rest, []byte("\n---"))
		text = body
		leaves = wholeLeaves(yamlAsJSON(head))
	}
	runs := false // in a block of commands
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch fence := strings.HasPrefix(line, "```"); {
		case runs && fence:
			runs = false
		case runs, strings.Contains(line, "!`"):
			leaves = append(leaves, Leaf{Name: "runs", Value: line})
		case fence:
			runs = strings.HasPrefix(line, "```!")
		}
	}
	return leaves
}

// yamlAsJSON is one document of YAML as JSON. Anything else stays as it is.
func yamlAsJSON(text []byte) []byte {
	var values, more any
	in := yaml.NewDecoder(bytes.NewReader(text))
	if in.Decode(&values) != nil || !errors.Is(in.Decode(&more), io.EOF) {
		return text
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return text
	}
	return raw
}

// envLeaves are the lines of a .env file that set variables of agents and their runtimes. Others are the project's own.
func envLeaves(text []byte) []Leaf {
	var leaves []Leaf
	for line := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return strings.ContainsRune("\n\r\u2028\u2029", r) }) {
		if m := envLine().FindStringSubmatch(line); m != nil && steersAgent(m[1]) {
			leaves = append(leaves, Leaf{Name: m[1], Value: strings.TrimSpace(m[2])})
		}
	}
	return leaves
}

// envLine is a line as the library dotenv reads it, which most agents use.
var envLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\s\v\p{Z}\x{feff}]*(?:export[\s\v\p{Z}\x{feff}]+)?([\w.-]+)[\s\v\p{Z}\x{feff}]*[=:](.*)$`)
})

// steersAgent says whether a variable changes how an agent, its runtime or its programs work.
func steersAgent(name string) bool {
	upper := strings.ToUpper(name)
	prefixed := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
	return slices.ContainsFunc([]string{
		"GEMINI_", "GOOGLE_", "CODE_ASSIST_", "CLOUD_SHELL", "OTEL_", "NODE_", "SANDBOX", "BUILD_SANDBOX", "SEATBELT", "LD_", "DYLD_",
		"GIT_", "NPM_", "BASH", "SSL_", "SSH_", "XDG_", "PYTHON", "PERL", "RUBY", "GOFLAGS", "CARGO_", "RUSTC", "PIP_", "LESSOPEN", "MANPAGER",
		"MAKEFLAGS", "GCE_METADATA", "CLOUDSDK_",
	}, prefixed) || strings.HasSuffix(upper, "_PROXY") || strings.HasSuffix(upper, "_OPTIONS") ||
		slices.Contains([]string{"PATH", "HOME", "SHELL", "EDITOR", "VISUAL", "PAGER", "BROWSER", "ENV", "IFS", "TMPDIR", "SHELLOPTS"}, upper)
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
