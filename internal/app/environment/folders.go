package environment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/rooted"
	"ductor/lang"
)

// folder is a path of the configuration that containers use: a root, the directory of a project, a mount or a seed.
// Agents can replace directories by links. So links count only if they existed when ductor read the configuration.
type folder struct {
	name string // name of the project; empty for others
	dir  string // path in the configuration
	// placed is dir with only those links resolved that agents cannot have created; see Policy.place.
	placed string
	real   string // where dir may lead: its real path, or placed if ductor does not follow the links
	link   string // where the links led when ductor started, if it does not follow them; otherwise empty
}

// newFolder resolves the links in a path of the configuration.
func (p Policy) newFolder(name, dir string) folder {
	return folder{name: name, dir: filepath.Clean(dir), placed: p.place(dir), real: cli.RealPath(dir)}
}

func (f *folder) ignoreLinks() { f.link, f.real = f.real, f.placed }

const maxLinks = 255

// place resolves the links in a path up to the first link inside p.areas, which an agent may have created. If no link
// is inside them, the result is the real path.
func (p Policy) place(path string) string {
	path = filepath.Clean(path)
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		to, err := os.Readlink(next)
		if err != nil { // a directory, a file or nothing
			at = next
			continue
		}
		if p.inside(at) {
			return filepath.Join(append([]string{next}, rest...)...)
		}
		if links++; links > maxLinks {
			return path
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(at, to)
		}
		at, rest = "/", append(strings.Split(filepath.Clean(to), "/"), rest...)
	}
	return at
}

// inside reports whether agents may write at a real path.
func (p Policy) inside(path string) bool {
	return slices.ContainsFunc(p.areas, func(area string) bool { return cli.Lies(path, area) })
}

// fixed returns the record of a mount or a seed. It returns false if agents cannot replace the path. ductor follows
// links only within the same project, or outside of all projects.
func (p Policy) fixed(path string) (folder, bool) {
	f := p.newFolder("", path)
	if f.real != f.placed && (!p.inside(f.real) || p.deepest(f.real) != p.deepest(f.placed)) {
		f.ignoreLinks()
	}
	return f, p.inside(f.placed)
}

// check returns an error for users if links lead the directory elsewhere than to f.real. It returns nil if the directory
// is missing.
func (f folder) check() error {
	leads, err := rooted.RealPath(f.dir)
	if err == nil && leads == f.real {
		return nil
	}
	return &lang.Error{Explain: func(in lang.Printer) string {
		switch {
		case err != nil: // the engine may have more rights than ductor, and follow links that ductor cannot see
			return in.Text("failure.mount-unknown", f.dir)
		case f.link != "":
			return in.Text("failure.mount-link", f.dir, leads)
		}
		return in.Text("failure.mount-replaced", f.dir, leads, f.real)
	}}
}

// follows reports whether ductor follows the links in the directory of a project, where all contains the directories of
// all projects. An agent may have created the links before ductor started. So they must stay inside the roots, must not
// change which project lies in which other one, and must not move a directory from one sandbox to another, or out of it.
// p.folders must contain the projects around this one.
func (p Policy) follows(f folder, all []folder) bool {
	if f.real == f.placed {
		return true
	}
	for _, root := range p.roots {
		if cli.Lies(root.real, f.real) && !cli.Lies(root.real, f.placed) {
			return false
		}
	}
	for _, other := range all {
		if around, ok := p.folders[other.name]; ok && cli.Lies(f.placed, other.placed) {
			other = around // if ductor does not follow the links of the outer project, it follows none through it
		}
		if cli.Lies(f.real, other.real) != cli.Lies(f.placed, other.placed) ||
			cli.Lies(other.real, f.real) != cli.Lies(other.placed, f.placed) {
			return false
		}
	}
	return p.inside(f.real) && !p.docker(projectAround(f, all))
}

// projectAround returns the name of the innermost other project that contains the real path of a directory.
func projectAround(f folder, all []folder) string {
	name, deepest := config.DefaultSandbox, 0
	for _, other := range all {
		if other.name != f.name && cli.Lies(f.real, other.real) && len(other.real) > deepest {
			name, deepest = other.name, len(other.real)
		}
	}
	return name
}
