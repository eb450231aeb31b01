package approval

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/orchestrator"
)

// pathRule is an entry of the list of allowed tools that names files, such as "Edit(./docs/**)". The files are below
// the working directory of the turn.
type pathRule struct {
	name  string   // a tool or a kind of tools
	parts []string // the elements of the path; "**" stands for any number of directories
}

// parsePathRule parses an entry such as "Read(./src/**)". It returns false if ductor does not support the entry: the
// path must be relative and unambiguous, and "*" is the only special character.
//
// "src/**" means the same as "./src/**". A name without a slash, such as "*.go", is ambiguous, because agents search it
// in all directories.
func parsePathRule(entry string) (pathRule, bool) {
	name, rest, _ := strings.Cut(entry, "(")
	text, closed := strings.CutSuffix(rest, ")")
	below, dotted := strings.CutPrefix(text, "./")
	r := pathRule{name, strings.Split(below, "/")}
	known := name == "Read" || name == "read" || tools.KindOf(name) == "edit"
	if !known || !closed || !dotted && len(r.parts) < 2 || strings.ContainsAny(text, `\[]{}()!?~`) {
		return pathRule{}, false
	}
	wrong := func(part string) bool {
		return part == "" || part == "." || part == ".." || part != "**" && strings.Contains(part, "**")
	}
	return r, !slices.ContainsFunc(r.parts, wrong)
}

// covers reports whether the rule allows a request that only reads one file or only changes files. The rule must match
// the path of each file and the target of each symbolic link. The caller must check changes of files with editsBelow,
// too.
func (r pathRule) covers(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	if !tools.CoversPaths(a.Agent, r.name, p.Tool) {
		return false
	}
	var paths []string
	if len(p.Changes) == 0 && tools.KindOf(r.name) == "read" {
		paths = []string{p.ReadFile()}
	}
	if tools.KindOf(r.name) == "edit" {
		for _, c := range p.Changes {
			paths = append(paths, c.Path)
		}
	}
	for _, l := range a.Links {
		if !r.matches(l.Real) {
			return false
		}
	}
	inspected := pathsOf(a)
	other := func(file string) bool {
		rel, err := filepath.Rel(a.Dir, cli.Absolute(a.Dir, file))
		return err != nil || strings.HasPrefix(file, "~") || slices.Contains(strings.Split(file, "/"), "..") ||
			!slices.Contains(inspected, cli.Absolute(a.Dir, file)) || !r.matches(rel)
	}
	return len(paths) > 0 && filepath.IsAbs(a.Dir) && !slices.ContainsFunc(paths, other)
}

// matches reports whether the rule matches a path relative to the working directory. A star matches neither hidden
// files and directories nor files whose names suggest that they contain secrets.
func (r pathRule) matches(file string) bool {
	return filepath.IsLocal(file) && matchParts(r.parts, strings.Split(file, "/"))
}

func matchParts(pattern, file []string) bool {
	switch {
	case len(pattern) == 0 || len(file) == 0:
		return len(pattern) == 0 && len(file) == 0
	case pattern[0] == "**" && len(pattern) == 1:
		return !slices.ContainsFunc(file, private)
	case pattern[0] == "**":
		return matchParts(pattern[1:], file) || !private(file[0]) && matchParts(pattern, file[1:])
	}
	same, err := path.Match(pattern[0], file[0])
	return err == nil && same && (pattern[0] == file[0] || !private(file[0])) && matchParts(pattern[1:], file[1:])
}
