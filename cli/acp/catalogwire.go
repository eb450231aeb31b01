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

// Entry is an agent of the catalogue. Name, Command and Site are never empty. Any other field is empty if the catalogue
// does not know it.
type Entry struct {
	ID      string            `toml:"-"`       // the name of its table in the configuration
	Name    string            `toml:"name"`    // for users
	Command string            `toml:"command"` // the program, without a directory
	Args    []string          `toml:"args"`    // make it speak the protocol
	Env     map[string]string `toml:"env"`     // its process needs these variables
	Site    string            `toml:"site"`    // has its documentation
	Install string            `toml:"install"` // a command line for a shell
	Login   string            `toml:"login"`   // a command line, or words that name one
	Auth    []string          `toml:"auth"`    // the kinds of log-ins that it offers: agent, terminal, env_var
	Keys    []string          `toml:"keys"`    // variables that can contain its key
	State   []string          `toml:"state"`   // directories that it writes
	Home    string            `toml:"home"`    // the variable with the directory of its state, its log-in included
	Resume  []string          `toml:"resume"`  // a command line for a terminal; {id} is the session
	Loads   string            `toml:"loads"`   // whether it loads sessions: yes or no
	Models  string            `toml:"models"`  // where its models come from
	Images  string            `toml:"images"`  // whether it takes images: yes or no
	Tested  string            `toml:"tested"`  // the version that ductor's tests ran
	// Holds is how it is held to permission modes.
	Holds map[cli.PermissionMode]Holding `toml:"holds"`
	// Source has a source for each field that is not empty, by the field's key.
	Source map[string]string `toml:"source"`
}

const (
	maxText     = 2000   // bytes of a field
	sessionMark = "{id}" // stands for a session in Entry.Resume
)

// parseCatalogue reads a catalogue. It returns the entries sorted by ID. It returns an error if the text has an unknown
// key, or an entry that breaks the contract of Entry or has a field that is too long.
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

// Catalogue returns the agents of the ACP registry that ductor knows, sorted by ID. The configuration can override all of
// their fields. Do not change the result. A test guarantees that the file is valid.
var Catalogue = sync.OnceValue(func() []Entry {
	all, err := parseCatalogue(catalogueFile)
	if err != nil {
		panic(err)
	}
	return all
})

// FindEntry returns the entry with an ID.
func FindEntry(id string) (Entry, bool) { return findEntry(id, func(e Entry) string { return e.ID }) }

// EntryOf returns the entry whose program has the name of the one at path.
func EntryOf(path string) (Entry, bool) {
	return findEntry(filepath.Base(path), func(e Entry) string { return e.Command })
}

// entryNamed returns the entry of an agent by the name that its program reports.
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

// Preset returns the settings of an agent with the values of the catalogue, which the configuration overrides.
func (e Entry) Preset(s Settings) Settings {
	s.Path, s.Args, s.Env = e.Command, slices.Concat([]string{}, e.Args), slices.Concat([]string{}, e.Keys)
	return s
}

// HowToInstall returns a sentence that tells the user how to install the agent, which e need not know.
func (e Entry) HowToInstall(agent cli.Agent) string {
	if e.Name == "" {
		return "Install " + string(agent) + ", or set its path"
	}
	return "Install " + e.Name + ": " + cmp.Or(e.Install, e.Site)
}
