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

// Policy says by directory where agents run. It is the orchestrator.Sandboxes of a configuration.
type Policy struct {
	projects []projectDir
	sandbox  config.Sandbox
	any      bool // there are sandboxes at all
}

// projectDir is a directory that leads to a project. What leads where was settled when ductor started, before any
// agent could change it.
type projectDir struct{ dir, name string }

// NewPolicy reads which directory leads to which project.
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

// realDir follows all links; a directory that is not there is as it is written.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir)
}

// Of gives the sandbox that a conversation's agents run in whose directory is dir; empty is this machine.
func (p Policy) Of(dir string, conv orchestrator.ConversationID) cli.Sandbox {
	if name := p.project(dir); p.docker(name) {
		return p.part(name, conv)
	}
	return ""
}

// part is what a conversation has of a sandbox: all of it, or a container of its own.
func (p Policy) part(name string, conv orchestrator.ConversationID) cli.Sandbox {
	if p.sandbox.Named(name).Isolation == docker.IsolationConversation {
		return cli.Sandbox(name).For(conv.Key())
	}
	return cli.Sandbox(name)
}

var errNoSandboxes = errors.New("ductor's configuration has no sandbox; set sandbox.mode, or that of a project, and start ductor anew")

// Forced gives the sandbox of a task that asks for one, whatever the Policy of its project.
func (p Policy) Forced(dir string, conv orchestrator.ConversationID) (cli.Sandbox, error) {
	if !p.any {
		return "", errNoSandboxes
	}
	return p.part(p.project(dir), conv), nil
}

// OnHost says whether anything may run on this machine.
func (p Policy) OnHost() bool {
	return !p.docker(config.DefaultSandbox) || slices.ContainsFunc(p.projects, func(d projectDir) bool { return !p.docker(d.name) })
}

func (p Policy) docker(name string) bool {
	return p.sandbox.Named(name).Mode == orchestrator.SandboxDocker
}

// project is the project that dir is in. Links may have been laid by an agent that works there: where what is written
// and what it leads to are in different projects, the one with a sandbox counts.
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
