package environment

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// Policy determines in which environment an agent runs, by its working directory. It implements orchestrator.Sandboxes.
// It is also the record of where the directories of the configuration led when ductor started. ductor must create only
// one Policy, because agents may replace directories by links later.
type Policy struct {
	projects []projectDir
	confined []projectDir // targets of links that ductor does not follow; they do not belong to the projects
	roots    []folder
	folders  map[string]folder // directories of the projects, by name
	areas    []string          // real paths of directories in which agents may create links
	sandbox  config.Sandbox
	any      bool // whether any directory has a sandbox
}

// projectDir is a path of a project's directory: the one in the configuration, or the one with links resolved.
type projectDir struct{ dir, name string }

// NewPolicy returns the policy of a configuration. It resolves the links in the directories of the projects and roots.
func NewPolicy(cfg config.Config) Policy {
	p := Policy{sandbox: cfg.Sandbox, any: asksForSandbox(cfg), folders: map[string]folder{}}
	p.addRoots(cfg.Projects.Roots)
	var all []folder
	for _, name := range slices.Sorted(maps.Keys(cfg.Sandbox.Projects)) {
		all = append(all, p.newFolder(name, cfg.Sandbox.Projects[name].Dir))
	}
	slices.SortStableFunc(all, func(a, b folder) int { return len(a.placed) - len(b.placed) }) // outer projects first
	for i, f := range all {
		for _, outer := range all[:i] {
			if o := p.folders[outer.name]; o.real != o.placed && cli.Lies(f.placed, o.placed) {
				f.placed = p.place(filepath.Join(o.real, f.placed[len(o.placed):]))
				all[i] = f
			}
		}
		if !p.follows(f, all) {
			// Sessions that already work at the target of the links must not run on this host now.
			if p.docker(f.name) && !p.docker(projectAround(f, all)) && p.belowRoot(f.real) {
				p.confined = append(p.confined, projectDir{f.real, f.name})
			}
			f.ignoreLinks()
		}
		p.folders[f.name] = f
		p.projects = append(p.projects, projectDir{f.dir, f.name}, projectDir{f.real, f.name})
	}
	p.addMounts(cfg)
	return p
}

// addRoots records the roots. A root inside of another one may be a link of an agent. So it must stay inside of them,
// unless all agents run on this host anyway.
func (p *Policy) addRoots(dirs []string) {
	for _, dir := range outerFirst(dirs) {
		f := p.newFolder("", dir)
		if p.any && f.real != f.placed && !p.inside(f.real) {
			f.ignoreLinks()
		}
		p.roots, p.areas = append(p.roots, f), append(p.areas, f.real)
	}
	slices.SortStableFunc(p.roots, func(a, b folder) int {
		return slices.Index(dirs, a.dir) - slices.Index(dirs, b.dir)
	})
}

// addMounts records the mounts in which agents may write.
func (p *Policy) addMounts(cfg config.Config) {
	var dirs []string
	for _, name := range append(slices.Collect(maps.Keys(cfg.Sandbox.Projects)), config.DefaultSandbox) {
		mounts, _ := cfg.Sandbox.Named(name).ParseMounts() // opening the sandbox reports the error
		for _, m := range mounts {
			if m.Writable {
				dirs = append(dirs, m.Source)
			}
		}
	}
	for _, dir := range outerFirst(dirs) {
		f, _ := p.fixed(dir)
		p.areas = append(p.areas, f.real)
	}
}

func outerFirst(dirs []string) []string {
	return slices.SortedStableFunc(slices.Values(dirs), func(a, b string) int { return len(a) - len(b) })
}

// belowRoot reports whether a real path lies in a root, and no root lies in it.
func (p Policy) belowRoot(path string) bool {
	return p.inside(path) && !slices.ContainsFunc(p.roots, func(f folder) bool { return cli.Lies(f.real, path) })
}

// Real returns the real path of a directory in the configuration. It returns dir unchanged if links lead out of the
// roots or to another environment, because an agent may have created them.
func (p Policy) Real(dir string) string {
	real, none := cli.RealPath(dir), orchestrator.ConversationID{}
	if p.inside(real) && p.Of(real, none) == p.Of(dir, none) &&
		!slices.ContainsFunc(p.confined, func(c projectDir) bool { return cli.Lies(real, c.dir) }) {
		return real
	}
	return dir
}

// Of implements orchestrator.Sandboxes.
func (p Policy) Of(dir string, conv orchestrator.ConversationID) cli.Sandbox {
	if name := p.project(dir); p.docker(name) {
		return p.sandboxFor(name, conv)
	}
	return ""
}

// sandboxFor returns the name of a project's sandbox. If each conversation has its own container, the name includes the
// conversation.
func (p Policy) sandboxFor(name string, conv orchestrator.ConversationID) cli.Sandbox {
	if p.sandbox.Named(name).Isolation == docker.IsolationConversation {
		return cli.Sandbox(name).For(conv.Key())
	}
	return cli.Sandbox(name)
}

var errNoSandboxes = errors.New("ductor's configuration has no sandbox; set sandbox.mode, also possible for one " +
	"project, and restart ductor")

// Forced implements orchestrator.Sandboxes.
func (p Policy) Forced(dir string, conv orchestrator.ConversationID) (cli.Sandbox, error) {
	if !p.any {
		return "", errNoSandboxes
	}
	return p.sandboxFor(p.project(dir), conv), nil
}

// OnHost reports whether agents may run on this machine.
func (p Policy) OnHost() bool {
	return !p.docker(config.DefaultSandbox) ||
		slices.ContainsFunc(p.projects, func(d projectDir) bool { return !p.docker(d.name) })
}

func (p Policy) docker(name string) bool {
	return p.sandbox.Named(name).Mode == orchestrator.SandboxDocker
}

// project returns the name of the project that contains dir. If dir contains symbolic links, dir may be in one project
// and the target of the links in another. An agent may have created the links to leave a sandbox. So project returns
// the project with a sandbox, if one of the two projects has one.
func (p Policy) project(dir string) string {
	if len(p.projects) == 0 {
		return config.DefaultSandbox
	}
	written, real := p.deepest(filepath.Clean(dir)), p.deepest(cli.RealPath(dir))
	if p.docker(written) {
		return written
	}
	return real
}

func (p Policy) deepest(dir string) string {
	name, deepest := config.DefaultSandbox, 0
	for _, all := range [][]projectDir{p.projects, p.confined} {
		for _, project := range all {
			if cli.Lies(dir, project.dir) && len(project.dir) > deepest {
				name, deepest = project.name, len(project.dir)
			}
		}
	}
	return name
}
