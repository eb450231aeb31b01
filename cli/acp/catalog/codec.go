// Package catalog has the agents of the ACP registry that ductor knows: how they start, log in, and are held to
// permission modes. Their data is in ../catalog.toml. The configuration can override all of it.
package catalog

import (
	"cmp"
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
	"ductor/cli/acp"
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
	Resume  []string          `toml:"resume"`  // a command line for a terminal; {id} is the session
	Loads   string            `toml:"loads"`   // whether it loads sessions: yes or no
	Models  string            `toml:"models"`  // where its models come from
	Images  string            `toml:"images"`  // whether it takes images: yes or no
	Tested  string            `toml:"tested"`  // the version that ductor's tests ran
	// Holds is how it is held to permission modes.
	Holds map[cli.PermissionMode]acp.Holding `toml:"holds"`
	// Source has a source for each field that is not empty, by the field's key.
	Source map[string]string `toml:"source"`
}

const (
	maxText     = 1000   // bytes of a field
	sessionMark = "{id}" // stands for a session in Entry.Resume
)

// Parse reads a catalogue. It returns the entries sorted by ID. It returns an error if the text has an unknown
// key, or an entry that breaks the contract of Entry or has a field that is too long.
func Parse(text string) (all []Entry, err error) {
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

// all parses the file once. A test guarantees that it is valid.
var all = sync.OnceValue(func() []Entry {
	entries, err := Parse(acp.CatalogFile())
	if err != nil {
		panic(err)
	}
	return entries
})

// All returns all agents, sorted by ID.
func All() []Entry { return slices.Clone(all()) }

// Find returns the agent with an ID.
func Find(id string) (Entry, bool) { return find(id, func(e Entry) string { return e.ID }) }

// OfProgram returns the agent whose program has the name of the one at path.
func OfProgram(path string) (Entry, bool) {
	return find(filepath.Base(path), func(e Entry) string { return e.Command })
}

func find(name string, of func(Entry) string) (Entry, bool) {
	if i := slices.IndexFunc(all(), func(e Entry) bool { return of(e) == name }); i >= 0 {
		return all()[i], true
	}
	return Entry{}, false
}

// Preset returns the settings of an agent with the values of the catalogue, which the configuration overrides.
func (e Entry) Preset(s acp.Settings) acp.Settings {
	s.Path, s.Args, s.Env = e.Command, slices.Concat([]string{}, e.Args), slices.Concat([]string{}, e.Keys)
	return s
}

// HowToInstall returns a sentence that tells the user how to install the agent.
func (e Entry) HowToInstall() string { return "Install " + e.Name + ": " + cmp.Or(e.Install, e.Site) }

// ResumeCommand returns the words of a command line that resumes a session in a terminal. It returns nil if they are
// unknown.
func (e Entry) ResumeCommand(id cli.AgentSessionID) (words []string) {
	for _, word := range e.Resume {
		words = append(words, strings.ReplaceAll(word, sessionMark, string(id)))
	}
	return words
}
