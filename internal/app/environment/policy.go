package environment

import (
	"errors"
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
	any      bool // whether any directory has a sandbox
}

// projectDir is a directory of a project. Symbolic links in it are resolved when ductor starts, before an agent can
// change them.
type projectDir struct{ dir, name string }

// NewPolicy returns the policy of a configuration.
func NewPolicy(cfg config.Config) Policy {
	p := Policy{sandbox: cfg.Sandbox, any: asksForSandbox(cfg)}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sandbox.Projects)) {
		dir := cfg.Sandbox.Projects[name].Dir
		p.projects = append(p.projects, projectDir{dir, name})
		if real := realDir(dir); real != dir {
			p.projects = append(p.projects, projectDir{real, name})
		}
	}
	return p
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
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") && len(project.dir) > deepest {
			name, deepest = project.name, len(project.dir)
		}
	}
	return name
}
