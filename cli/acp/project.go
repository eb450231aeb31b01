package acp

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// Project describes the settings that a project can contain for an agent. They can start programs, or let the agent act
// without asking in any mode. If Env, Args or Meta is set, the agent runs without settings that no user has allowed.
// Otherwise ductor runs no turn with such settings.
type Project struct {
	Files []string          `toml:"files"` // as in cli.ProjectReader
	Env   map[string]string `toml:"env"`   // added to the environment of its process, and
	Args  []string          `toml:"args"`  // to its command line, while the settings are not allowed
	// Meta is a JSON object, the field _meta of sessions. It also applies if ductor found no settings, because the
	// agent may notice new ones while it works. "{dir}" in a text stands for the working directory.
	Meta string `toml:"meta"`
}

// check returns an error if the project cannot be as described.
func (p Project) check() error {
	for _, name := range p.Files {
		if clean := strings.TrimSuffix(name, "/"); clean == "" || path.IsAbs(name) || path.Clean(clean) != clean ||
			strings.HasPrefix(clean, "..") || strings.Contains(name, `\`) {
			return errors.New("project.files needs names relative to a directory")
		}
	}
	var object map[string]any
	switch {
	case p.Meta != "" && (json.Unmarshal([]byte(p.Meta), &object) != nil || object == nil):
		return errors.New("project.meta is no JSON object")
	case len(p.Files) == 0 && p.excludes():
		return errors.New("project needs files")
	}
	return nil
}

// excludes reports whether the agent can run without the settings.
func (p Project) excludes() bool { return len(p.Env)+len(p.Args) > 0 || p.Meta != "" }

// project returns the description in Options. For a program behind a wrapper, it returns the files and the meta of the
// catalogue, because the wrapper was started without the rest. For an unknown program, it returns the folders with the
// names of the agent and its program.
func (o *Options) project() Project {
	if len(o.Project.Files) > 0 {
		return o.Project
	}
	p := Project{Files: o.reported.Project.Files, Meta: o.reported.Project.Meta}
	if len(p.Files) == 0 {
		p.Files = slices.Compact([]string{"." + string(o.Agent) + "/", "." + filepath.Base(o.Path) + "/"})
	}
	return p
}

// vars returns the variables that hold the agent to the mode of a request and to its project settings.
func (o *Options) vars(req cli.Request) map[string]string {
	h, _ := o.listed(req.Permission)
	all := map[string]string{}
	maps.Copy(all, h.Env)
	switch req.Project {
	case cli.WithoutProject:
		maps.Copy(all, o.Project.Env)
	case cli.WithProject:
		for name := range o.Project.Env {
			delete(all, name)
		}
	case cli.EmptyProject:
	}
	return all
}

// projectArgs returns the arguments that exclude the settings of the project.
func (o *Options) projectArgs(req cli.Request) []string {
	if req.Project != cli.WithoutProject {
		return nil
	}
	return o.Project.Args
}

// meta returns the field _meta of a session, or nil.
func (o *Options) meta(req cli.Request) any {
	text := o.project().Meta
	if req.Project == cli.WithProject || text == "" {
		return nil
	}
	var value any
	if json.Unmarshal([]byte(text), &value) != nil { // Project.check has excluded that
		return nil
	}
	return inDir(value, req.Dir)
}

// inDir replaces "{dir}" in all texts of a JSON value.
func inDir(value any, dir string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, "{dir}", dir)
	case []any:
		for i := range v {
			v[i] = inDir(v[i], dir)
		}
	case map[string]any:
		for key := range v {
			v[key] = inDir(v[key], dir)
		}
	}
	return value
}

// checkProject returns a Failure if the project has settings that no user has allowed, and the agent cannot run without
// them.
func (o *Options) checkProject(req cli.Request) error {
	p := o.project()
	if req.Project == cli.WithProject || p.excludes() {
		return nil
	}
	home, _ := os.UserHomeDir() // without a home, the search ends at none
	fields, missing := cli.ReadProject(req.Dir, cli.RealPath(home), p.Files)
	if len(fields) == 0 && missing == "" {
		return nil
	}
	if len(fields) > 0 {
		missing, _, _ = strings.Cut(fields[0].Name, ": ")
	}
	return cli.Failf(cli.Refused, o.Agent, "this project has settings for it (%s), which can widen its rights, and it "+
		"cannot work without them: only your own messages to it can use them, once you allow them (/new asks again); "+
		"for a consultation, a summary or a job, choose another agent", missing)
}

// checkShown returns a Failure if the request may use the settings of the project, but the agent reads files outside of
// shown, the list of the settings that users were asked about. The next question is then about the agent's own list.
func (proc *agentProcess) checkShown(req cli.Request, shown []string) error {
	o := proc.options()
	files := o.project().Files
	i := slices.IndexFunc(files, func(file string) bool { return !slices.Contains(shown, file) })
	if req.Project != cli.WithProject || i < 0 {
		return nil
	}
	proc.provider.reported.Store(&o.reported)
	return cli.Failf(cli.Refused, o.Agent, "its settings in this project (%s) are others than those that you were "+
		"asked about: send your message again to be asked about them", files[i])
}

// ProjectFiles implements cli.ProjectReader. Until the program behind a wrapper has reported its name, it could be any
// agent, so the list has the files of all agents in the catalogue.
func (p *Provider) ProjectFiles() []string {
	o, reported := p.opts, p.reported.Load()
	if reported != nil {
		o.reported = *reported
	}
	files := slices.Clone(o.project().Files)
	if reported == nil && o.known.ID == "" && len(o.Project.Files) == 0 {
		for _, e := range Catalogue() {
			files = append(files, e.Project.Files...)
		}
		slices.Sort(files)
		files = slices.Compact(files)
	}
	return files
}
