package acp

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"ductor/cli"
)

// Entry describes an agent in the catalogue, which is ductor's built-in list of agents that speak the protocol. Name,
// Command and Site are never empty. Any other field is empty if its value is unknown.
type Entry struct {
	ID      string            `toml:"-"`       // key of the agent's table in the catalogue
	Name    string            `toml:"name"`    // the name that users see
	Command string            `toml:"command"` // name of the program, without a directory
	Args    []string          `toml:"args"`    // arguments that make the program speak the protocol
	Env     map[string]string `toml:"env"`     // environment variables that the process needs
	Site    string            `toml:"site"`    // URL of the documentation
	Install string            `toml:"install"` // a shell command that installs the agent
	Login   string            `toml:"login"`   // a shell command that logs in, or a description of one
	Auth    []string          `toml:"auth"`    // kinds of log-in that the agent offers: agent, terminal, env_var
	Keys    []string          `toml:"keys"`    // environment variables that can contain an API key
	State   []string          `toml:"state"`   // directories that the agent writes to
	Home    string            `toml:"home"`    // environment variable with the directory of state and log-in
	Resume  []string          `toml:"resume"`  // command that resumes the session {id} in a terminal
	Loads   string            `toml:"loads"`   // whether the agent can load an earlier session: yes or no
	Models  string            `toml:"models"`  // describes where the agent's list of models comes from
	Images  string            `toml:"images"`  // whether the agent accepts images: yes or no
	Tested  string            `toml:"tested"`  // version of the agent that ductor was tested with
	// Holds contains, for each permission mode, the settings that make the agent respect the mode.
	Holds map[cli.PermissionMode]Holding `toml:"holds"`
	// Project describes the settings that a project can contain for the agent.
	Project Project `toml:"project"`
	// Source names the source of each field's value. Its keys are the TOML keys of the fields. Its values are keys of
	// the catalogue's table "sources".
	Source map[string]string `toml:"source"`
}

const (
	maxText     = 2000   // bytes of one field
	sessionMark = "{id}" // placeholder for the ID of a session in Entry.Resume
)

// parseCatalogue parses a catalogue and returns its entries sorted by ID. It returns an error for an unknown key, a
// field that is too long, or an entry that lacks a required field.
func parseCatalogue(text string) (all []Entry, err error) {
	var file struct {
		Sources map[string]string `toml:"sources"`
		Agents  map[string]Entry  `toml:"agents"`
	}
	if err := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(file.Agents)) {
		e := file.Agents[id]
		e.ID = id
		if err := e.check(file.Sources); err != nil {
			return nil, fmt.Errorf("the agent %q of the catalogue: %w", id, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func (e Entry) check(sources map[string]string) error {
	answers := []string{"", "yes", "no"}
	switch {
	case e.Name == "" || e.Command == "" || e.Site == "" || filepath.Base(e.Command) != e.Command:
		return errors.New("it needs a name, a site, and a command without a directory")
	case len(e.Resume) > 0 && !slices.Contains(e.Resume, sessionMark):
		return errors.New("resume does not name the session")
	case !slices.Contains(answers, e.Loads) || !slices.Contains(answers, e.Images):
		return errors.New("loads and images are yes or no")
	}
	for mode, h := range e.Holds {
		if !slices.Contains(cli.PermissionModes(), mode) || (h.Option == "") != (h.Value == "") ||
			reflect.ValueOf(h).IsZero() {
			return fmt.Errorf("holds.%s does not say how", mode)
		}
	}
	if err := e.Project.check(); err != nil {
		return err
	}
	known := 0
	for field, v := range reflect.ValueOf(e).Fields() {
		key := field.Tag.Get("toml")
		if key == "-" || key == "source" || v.IsZero() {
			continue
		}
		if known++; sources[e.Source[key]] == "" {
			return fmt.Errorf("%s needs a source of the list", key)
		}
		if len(fmt.Sprint(v.Interface())) > maxText {
			return fmt.Errorf("%s is too long", key)
		}
	}
	if known != len(e.Source) {
		return errors.New("it has a source for a field that it lacks")
	}
	return nil
}

//go:embed catalog.toml
var catalogueFile string

// Catalogue returns the agents in ductor's built-in list, sorted by ID. The caller must not change the result. A test
// guarantees that the embedded file is valid.
var Catalogue = sync.OnceValue(func() []Entry {
	all, err := parseCatalogue(catalogueFile)
	if err != nil {
		panic(err)
	}
	return all
})

// FindEntry returns the entry with the given ID.
func FindEntry(id string) (Entry, bool) { return findEntry(id, func(e Entry) string { return e.ID }) }

// EntryOf returns the entry whose command has the same base name as path.
func EntryOf(path string) (Entry, bool) {
	return findEntry(filepath.Base(path), func(e Entry) string { return e.Command })
}

// entryNamed returns the entry of the agent whose program reports the given name. It compares the name with the
// command, name and ID of each entry, without case and punctuation.
func entryNamed(program string) (Entry, bool) {
	for _, of := range []func(Entry) string{
		func(e Entry) string { return e.Command }, func(e Entry) string { return e.Name },
		func(e Entry) string { return e.ID },
	} {
		e, known := findEntry(bareMode(program), func(e Entry) string { return bareMode(of(e)) })
		if known {
			return e, true
		}
	}
	return Entry{}, false
}

func findEntry(name string, of func(Entry) string) (Entry, bool) {
	if i := slices.IndexFunc(Catalogue(), func(e Entry) bool { return of(e) == name }); i >= 0 {
		return Catalogue()[i], true
	}
	return Entry{}, false
}

// Preset returns a copy of s with the path, arguments and environment variables of the entry.
func (e Entry) Preset(s Settings) Settings {
	s.Path, s.Args, s.Env = e.Command, slices.Concat([]string{}, e.Args), slices.Concat([]string{}, e.Keys)
	return s
}

// HowToInstall returns a sentence that explains how to install the agent. The entry may be empty.
func (e Entry) HowToInstall(agent cli.Agent) string {
	if e.Name == "" {
		return "Install " + string(agent) + ", or set its path"
	}
	return "Install " + e.Name + ": " + cmp.Or(e.Install, e.Site)
}
