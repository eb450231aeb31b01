package config

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/docker"
	"ductor/orchestrator"
)

// DefaultSandbox is the name of the sandbox for directories that belong to no project. No project may have this name.
const DefaultSandbox = "default"

// Sandbox configures whether agents run on this machine or in containers. Its settings apply to all directories, unless
// a project has its own settings.
type Sandbox struct {
	docker.Settings
	Projects map[string]SandboxProject `toml:"projects"` // by name; nil if there are none
}

// SandboxProject configures the agents in one directory.
type SandboxProject struct {
	Dir string `toml:"dir" check:"path"`
	docker.Settings
}

// Any reports whether a sandbox is configured for any directory.
func (s Sandbox) Any() bool {
	for _, p := range s.Projects {
		if p.Mode == orchestrator.SandboxDocker {
			return true
		}
	}
	return s.Mode == orchestrator.SandboxDocker
}

// At returns the innermost project that contains dir, and the sandbox settings of this project. If no project contains
// dir, At returns DefaultSandbox and its settings. At does not resolve symbolic links.
func (s Sandbox) At(dir string) (string, docker.Settings) {
	name, deepest := DefaultSandbox, ""
	for _, n := range slices.Sorted(maps.Keys(s.Projects)) {
		if p := s.Projects[n]; cli.Lies(dir, p.Dir) && len(p.Dir) > len(deepest) {
			name, deepest = n, p.Dir
		}
	}
	return name, s.Named(name)
}

// Named returns the settings of a project, or of DefaultSandbox.
func (s Sandbox) Named(name string) docker.Settings {
	if p, ok := s.Projects[name]; ok {
		return p.Settings
	}
	return s.Settings
}

// sandbox decodes the table [sandbox], and then the tables of projects, which inherit settings from [sandbox].
func (d *decoder) sandbox(path []string, in any, out *Sandbox) {
	table, ok := in.(map[string]any)
	if !ok {
		d.found.add(dotted(path), "should be a table, not %s", kindOf(in))
		return
	}
	own := maps.Clone(table)
	delete(own, "projects")
	d.table(path, own, out)
	all, there := table["projects"]
	if !there {
		return
	}
	projects := reflect.ValueOf(&out.Projects).Elem()
	d.namedTables(append(slices.Clip(path), "projects"), all, projects, func(project reflect.Value, in any) {
		project.Addr().Interface().(*SandboxProject).Settings = out.inherited(in)
	})
}

// inherited returns the settings that a project inherits. An image and a build directory exclude each other: if a
// project sets one of them, it does not inherit the other.
func (s *Sandbox) inherited(project any) docker.Settings {
	one := s.Settings
	keys, _ := project.(map[string]any)
	_, image := keys["image"]
	_, build := keys["build_dir"]
	if image && !build {
		one.BuildDir = ""
	}
	if build && !image {
		one.Image = ""
	}
	return one
}

// completeSeeds adds the missing target paths of seeds. A seed is a file that ductor copies into a sandbox. If the file
// is in the home directory of this machine, the copy gets the same path in the home directory of the sandbox.
func completeSeeds(c *Config, home string) {
	complete := func(s *docker.Settings) {
		s.Seeds = slices.Clone(s.Seeds)
		for i, from := range s.Seeds {
			to, err := filepath.Rel(home, from)
			if err == nil && filepath.IsAbs(home) && to != "." && filepath.IsLocal(to) && !strings.Contains(from, ":") {
				s.Seeds[i] = from + ":" + to
			}
		}
	}
	complete(&c.Sandbox.Settings)
	for name, p := range c.Sandbox.Projects {
		complete(&p.Settings)
		c.Sandbox.Projects[name] = p
	}
}

// withoutInherited removes the problems that projects have inherited from the table [sandbox], because one report of
// such a problem is enough.
func (p problems) withoutInherited() problems {
	return slices.DeleteFunc(p, func(q Problem) bool {
		rest, ok := strings.CutPrefix(q.Key, "sandbox.projects.")
		_, key, _ := cutLast(rest)
		return ok && slices.Contains(p, Problem{Key: "sandbox." + key, Text: q.Text})
	})
}
