package environment

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// Policy determines in which environment an agent runs, by its working directory. It implements orchestrator.Sandboxes.
type Policy struct {
	projects []projectDir
	sandbox  config.Sandbox
	any      bool              // whether any directory has a sandbox
	refused  map[string]string // real paths of the projects whose links ductor does not follow, by name
}

// projectDir is a directory of a project. Symbolic links in it are resolved when ductor starts, before an agent can
// change them.
type projectDir struct{ dir, name string }

// NewPolicy returns the policy of a configuration.
func NewPolicy(cfg config.Config) Policy {
	p := Policy{sandbox: cfg.Sandbox, any: asksForSandbox(cfg), refused: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sandbox.Projects)) {
		p.projects = append(p.projects, projectDir{cfg.Sandbox.Projects[name].Dir, name})
	}
	outerFirst := slices.SortedStableFunc(slices.Values(p.projects), func(a, b projectDir) int {
		return len(a.dir) - len(b.dir)
	})
	var confined []projectDir // targets of refused links that nevertheless do not run on this host
	for _, project := range outerFirst {
		target := projectDir{cli.RealPath(project.dir), project.name}
		switch to := p.deepest(target.dir); {
		case target.dir == filepath.Clean(project.dir):
		case !p.any || p.follows(project, target.dir, cfg.Projects.Roots):
			p.projects = append(p.projects, target)
		default:
			p.refused[project.name] = target.dir
			if p.docker(project.name) && !p.docker(to) {
				confined = append(confined, target)
			}
		}
	}
	p.projects = append(p.projects, confined...)
	return p
}

// follows reports whether ductor follows the links in the directory of a project, which lead to real. An agent in a
// sandbox may have created the links before ductor started. So they must not lead from one sandbox or project to
// another, out of the roots, or to a directory that would lose its sandbox.
func (p Policy) follows(project projectDir, real string, roots []string) bool {
	from, to := p.deepest(filepath.Dir(filepath.Clean(project.dir))), p.deepest(real)
	if from != to || p.docker(to) && !p.docker(project.name) {
		return false
	}
	inRoots := func(root string) bool { return cli.Lies(real, cli.RealPath(root)) }
	return to != config.DefaultSandbox || !p.docker(to) || slices.ContainsFunc(roots, inRoots)
}

// CheckLink returns an error if links lead the directory of a project to another environment, so that nothing may run
// in the sandbox of the project.
func (p Policy) CheckLink(project string) error {
	real, ok := p.refused[project]
	if !ok {
		return nil
	}
	return &docker.Error{
		Reason: fmt.Sprintf("a link leads its directory %s to %s, in another environment, and an agent may have made "+
			"the link", p.sandbox.Projects[project].Dir, real),
		Fix: "put the directory back, or name the other one as the project's dir, then restart ductor",
	}
}

// realDir returns dir with all symbolic links resolved, or dir itself if it does not exist.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir)
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
	written, real := p.deepest(filepath.Clean(dir)), p.deepest(realDir(dir))
	if p.docker(written) {
		return written
	}
	return real
}

func (p Policy) deepest(dir string) string {
	name, deepest := config.DefaultSandbox, 0
	for _, project := range p.projects {
		rel, err := filepath.Rel(project.dir, dir)
		inside := err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
		deeper := len(project.dir) > deepest || len(project.dir) == deepest && p.docker(project.name)
		if inside && deeper {
			name, deepest = project.name, len(project.dir)
		}
	}
	return name
}
