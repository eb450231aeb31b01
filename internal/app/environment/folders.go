package environment

import (
	"fmt"
	"path/filepath"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/rooted"
	"ductor/lang"
)

// folder is a directory of the configuration in which agents work: a root, or the directory of a project. Agents can
// replace directories by links. So links count only if they existed when ductor read the configuration.
type folder struct {
	name string // name of the project; empty for a root
	dir  string // path in the configuration
	// placed is dir with only the links in the path of its root resolved. It differs from the real path if the directory
	// itself, or a directory below the root, is a link.
	placed string
	real   string // where dir may lead: its real path, or placed if ductor does not follow the links
}

// newFolder resolves the links in the path of a directory. roots contains the roots of the configuration.
func newFolder(name, dir string, roots []folder) folder {
	f := folder{name: name, dir: filepath.Clean(dir), real: cli.RealPath(dir)}
	f.placed = f.dir
	deepest := ""
	for _, root := range roots {
		if cli.Lies(f.dir, root.dir) && len(root.dir) > len(deepest) {
			deepest, f.placed = root.dir, filepath.Join(root.real, f.dir[len(root.dir):])
		}
	}
	return f
}

// check returns an error for users if links lead the directory elsewhere than to f.real. It returns nil if the directory
// is missing.
func (f folder) check() error {
	leads, err := rooted.RealPath(f.dir)
	if err != nil { // the engine may have more rights than ductor, and follow links that ductor cannot see
		return fmt.Errorf("ductor cannot check whether its folder %s is a link: %w", f.dir, err)
	}
	if leads == f.real {
		return nil
	}
	return &lang.Error{Explain: func(p lang.Printer) string {
		return p.Text("failure.mount-replaced", f.dir, leads, f.real)
	}}
}

// follows reports whether ductor follows the links in the directory of a project, where all contains the directories of
// all projects. An agent may have created the links before ductor started. So they must stay inside the roots, must not
// change which project lies in which other one, and must not take a directory out of a sandbox. p.folders must contain
// the projects around this one.
func (p Policy) follows(f folder, all []folder) bool {
	if f.real == f.placed {
		return true
	}
	inside := false
	for _, root := range p.roots {
		inside = inside || cli.Lies(f.real, root.real)
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
	return inside && (p.docker(f.name) || !p.docker(projectAround(f, all)))
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
