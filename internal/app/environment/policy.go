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
type Policy struct {
	projects []projectDir
	roots    []folder
	folders  map[string]folder // directories of the projects, by name
	sandbox  config.Sandbox
	any      bool // whether any directory has a sandbox
}

// projectDir is a path of a project's directory: the one in the configuration, or the one with links resolved.
type projectDir struct{ dir, name string }

// NewPolicy returns the policy of a configuration. It resolves the links in the directories of the projects and roots.
func NewPolicy(cfg config.Config) Policy {
	p := Policy{sandbox: cfg.Sandbox, any: asksForSandbox(cfg), folders: map[string]folder{}}
	for _, root := range cfg.Projects.Roots {
		p.roots = append(p.roots, newFolder("", root, nil))
	}
	var all []folder
	for _, name := range slices.Sorted(maps.Keys(cfg.Sandbox.Projects)) {
		all = append(all, newFolder(name, cfg.Sandbox.Projects[name].Dir, p.roots))
	}
	slices.SortStableFunc(all, func(a, b folder) int { return len(a.placed) - len(b.placed) }) // outer projects first
	var confined []projectDir
	for _, f := range all {
		if !p.follows(f, all) {
			// The target of the links does not belong to the project. But sessions that already work there must not run
			// on this host now.
			if p.docker(f.name) && !p.docker(projectAround(f, all)) {
				confined = append(confined, projectDir{f.real, f.name})
			}
			f.real = f.placed
		}
		p.folders[f.name] = f
		p.projects = append(p.projects, projectDir{f.dir, f.name}, projectDir{f.real, f.name})
	}
	p.projects = append(p.projects, confined...)
	return p
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
	for _, project := range p.projects {
		if cli.Lies(dir, project.dir) && len(project.dir) > deepest {
			name, deepest = project.name, len(project.dir)
		}
	}
	return name
}
