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

// Project describes the settings files of an agent in a project directory. Such settings can start programs, or allow
// the agent to act without asking. Therefore a user must allow them first. The fields Env, Args and Meta make the agent
// ignore settings that no user has allowed. If these three fields are empty, ductor refuses turns in a project that
// contains such settings.
type Project struct {
	Files []string          `toml:"files"` // paths of the settings; see cli.ProjectReader
	Env   map[string]string `toml:"env"`   // environment variables that make the agent ignore the settings in Files
	Args  []string          `toml:"args"`  // arguments that make the agent ignore the settings in Files
	// Meta is a JSON object for the field _meta of a session. The object makes the agent ignore the settings in
	// Files. "{dir}" in a text stands for the working directory. ductor sends Meta even if the project has no settings,
	// because the agent itself may create settings files during the session.
	Meta string `toml:"meta"`
}

// check returns an error if the description is invalid.
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

// excludes reports whether the agent can ignore the project's settings.
func (p Project) excludes() bool { return len(p.Env)+len(p.Args) > 0 || p.Meta != "" }

// project returns the description of the agent's project settings. It returns Options.Project if that contains files.
//
// Otherwise it returns the Files and Meta of the catalogue entry for the program. Env and Args are omitted, because the
// process was started without them. If the catalogue does not contain the program, Files are the directories that are
// named after the agent and after its program.
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

// vars returns environment variables that make the agent respect the permission mode. They also make the agent ignore
// project settings that no user has allowed.
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

// projectArgs returns the arguments that make the agent ignore the project's settings.
func (o *Options) projectArgs(req cli.Request) []string {
	if req.Project != cli.WithoutProject {
		return nil
	}
	return o.Project.Args
}

// meta returns the value of the field _meta of a session, or nil.
func (o *Options) meta(req cli.Request) any {
	text := o.project().Meta
	if req.Project == cli.WithProject || text == "" {
		return nil
	}
	var value any
	if json.Unmarshal([]byte(text), &value) != nil { // Project.check rejects invalid JSON
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

// checkProject returns a Failure if the project has settings that no user has allowed, and the agent cannot ignore
// them.
func (o *Options) checkProject(req cli.Request) error {
	p := o.project()
	if req.Project == cli.WithProject || p.excludes() {
		return nil
	}
	home, _ := os.UserHomeDir() // if home is empty, ReadProject excludes no directory
	fields, missing := cli.ReadProject(req.Dir, cli.RealPath(home), p.Files)
	if len(fields) == 0 && missing == "" {
		return nil
	}
	if len(fields) > 0 {
		missing, _, _ = strings.Cut(fields[0].Name, ": ")
	}
	return cli.Failf(cli.NotRun, o.Agent, "this project has settings for it (%s), which can widen its rights, and it "+
		"cannot work without them: only your own messages to it can use them, once you allow them (/new asks again); "+
		"for a consultation, a summary or a job, choose another agent", missing)
}

// checkShown returns a Failure if the agent may read settings files about which ductor has not asked the user. shown
// lists the files about which ductor has asked. In the next turn, ductor asks about all files that the agent reads.
func (proc *agentProcess) checkShown(req cli.Request, shown []string) error {
	o := proc.options()
	files := o.project().Files
	i := slices.IndexFunc(files, func(file string) bool { return !slices.Contains(shown, file) })
	if req.Project != cli.WithProject || i < 0 {
		return nil
	}
	proc.provider.reported.Store(&o.reported)
	return cli.Failf(cli.NotRun, o.Agent, "its settings in this project (%s) are others than those that you were "+
		"asked about: send your message again to be asked about them", files[i])
}

// ProjectFiles implements cli.ProjectReader. If the program is not in the catalogue, it may still be a wrapper around
// any agent. ProjectFiles then returns the files of all agents until the program has reported its name.
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
