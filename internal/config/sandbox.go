package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sandbox is where agents run: on this machine as they are, or in containers. What is said here goes for all that
// is in no project below, and for every project that says nothing else.
type Sandbox struct {
	SandboxSetting
	Projects map[string]SandboxProject `toml:"projects"` // by name; nil for none
}

// SandboxProject is a directory with a setting of its own.
type SandboxProject struct {
	Dir string `toml:"dir" check:"path"`
	SandboxSetting
}

// Any reports whether agents of any project run in a sandbox.
func (s Sandbox) Any() bool {
	for _, p := range s.Projects {
		if p.Mode == SandboxDocker {
			return true
		}
	}
	return s.Mode == SandboxDocker
}

// SandboxSetting is where the agents of one project run. After Load all paths are absolute.
type SandboxSetting struct {
	Mode         string        `toml:"mode" default:"off" check:"off|docker"` // SandboxOff or SandboxDocker
	Host         string        `toml:"host"`                                  // of the engine; empty: that of this machine
	CA           string        `toml:"ca" check:"path"`
	Cert         string        `toml:"cert" check:"path"`
	Key          string        `toml:"key" check:"path"`
	SSHConfig    string        `toml:"ssh_config" check:"path"`
	Image        string        `toml:"image"` // empty: one is built
	Pull         bool          `toml:"pull" default:"true"`
	BuildDir     string        `toml:"build_dir" check:"path"` // empty: the Dockerfile that ships
	BuildNetwork string        `toml:"build_network"`
	ImageFrom    string        `toml:"image_from"` // an engine that gets the image and sends it; empty: none
	Network      string        `toml:"network" default:"bridge"`
	CPUs         float64       `toml:"cpus"`               // 0: all but one; NoLimit: all
	MemoryMB     int           `toml:"memory_mb"`          // 0: half of the machine's; NoLimit
	PIDs         int           `toml:"pids" default:"512"` // 0: 512; NoLimit
	ReadOnlyRoot bool          `toml:"read_only_root"`
	User         string        `toml:"user"`                                                     // "uid:gid"; empty: that of this process
	Mounts       []string      `toml:"mounts" check:"path"`                                      // see ParseMounts
	Logins       string        `toml:"logins" default:"copy" check:"copy|none"`                  // LoginsCopy or LoginsNone
	Seeds        []string      `toml:"seeds" check:"path"`                                       // see ParseSeeds
	Env          []string      `toml:"env"`                                                      // "NAME=value"
	Idle         time.Duration `toml:"idle" default:"24h" check:"0|1m..87600h"`                  // 0: a container is never removed for doing nothing
	Home         string        `toml:"home" default:"shared" check:"shared|session"`             // HomeShared or HomeSession
	Isolation    string        `toml:"isolation" default:"project" check:"project|conversation"` // IsolationProject or IsolationConversation
	Runner       string        `toml:"runner" check:"path"`
}

// The words of a SandboxSetting.
const (
	SandboxOff    = "off"
	SandboxDocker = "docker"
	HomeShared    = "shared"  // one home for all sessions
	HomeSession   = "session" // each session has its own
	LoginsCopy    = "copy"    // the agents' log-ins are copied into the home
	LoginsNone    = "none"

	IsolationProject      = "project"      // one container for all conversations
	IsolationConversation = "conversation" // each conversation has its own
)

// NoLimit is the value of a limit of a sandbox that is none.
const NoLimit = -1

// DefaultSandbox names what is in no project; no project may be called so.
const DefaultSandbox = "default"

// Mount is a directory or file of the engine's machine that is seen in a container.
type Mount struct {
	Source   string
	Target   string // the same path as Source if none was given
	Writable bool
}

// Seed is a file or directory of this machine that is copied into the home of a container.
type Seed struct {
	From string
	To   string // below the home
}

// ParseMounts reads the mounts of a setting that Load has found right.
func (s SandboxSetting) ParseMounts() ([]Mount, error) { return parseAll(s.Mounts, parseMount) }

// ParseSeeds reads the seeds of a setting that Load has found right.
func (s SandboxSetting) ParseSeeds() ([]Seed, error) { return parseAll(s.Seeds, parseSeed) }

// At gives the setting of the project that dir is in, the deepest of them, and its name; DefaultSandbox where dir is
// in none. Paths are compared as they are written.
func (s Sandbox) At(dir string) (string, SandboxSetting) {
	name, deepest := DefaultSandbox, ""
	for _, n := range slices.Sorted(maps.Keys(s.Projects)) {
		if p := s.Projects[n]; inside(p.Dir, dir) && len(p.Dir) > len(deepest) {
			name, deepest = n, p.Dir
		}
	}
	return name, s.Named(name)
}

// Named is the setting of a project, or of all that is in none.
func (s Sandbox) Named(name string) SandboxSetting {
	if p, ok := s.Projects[name]; ok {
		return p.SandboxSetting
	}
	return s.SandboxSetting
}

// sandbox reads [sandbox] before its projects, which have of it what they do not say themselves.
func (d *decoder) sandbox(path []string, in any, out *Sandbox) {
	table, ok := in.(map[string]any)
	if !ok {
		d.found.add(dotted(path), "should be a table, not %s", kindOf(in))
		return
	}
	own := maps.Clone(table)
	delete(own, "projects")
	d.table(path, own, out)
	all, there := table["projects"]
	if !there {
		return
	}
	projects := reflect.ValueOf(&out.Projects).Elem()
	d.named(append(slices.Clip(path), "projects"), all, projects, func(project reflect.Value, in any) {
		project.Addr().Interface().(*SandboxProject).SandboxSetting = out.inherited(in)
	})
}

// inherited is what a project has of [sandbox]. One that names its image is not built of the other's directory, and
// the reverse.
func (s *Sandbox) inherited(project any) SandboxSetting {
	one := s.SandboxSetting
	keys, _ := project.(map[string]any)
	_, image := keys["image"]
	_, build := keys["build_dir"]
	if image && !build {
		one.BuildDir = ""
	}
	if build && !image {
		one.Image = ""
	}
	return one
}

// completeSeeds adds the place in the home of the sandbox to seeds of this machine's home that name none.
func completeSeeds(c *Config, home string) {
	complete := func(s *SandboxSetting) {
		s.Seeds = slices.Clone(s.Seeds)
		for i, from := range s.Seeds {
			to, err := filepath.Rel(home, from)
			if err == nil && filepath.IsAbs(home) && from != home && inside(home, from) && !strings.Contains(from, ":") {
				s.Seeds[i] = from + ":" + to
			}
		}
	}
	complete(&c.Sandbox.SandboxSetting)
	for name, p := range c.Sandbox.Projects {
		complete(&p.SandboxSetting)
		c.Sandbox.Projects[name] = p
	}
}

func projectKey(name string) string { return "sandbox.projects." + dotted([]string{name}) }

// withoutInherited removes the problems that a project has from [sandbox], which is blamed for them already.
func (p problems) withoutInherited() problems {
	return slices.DeleteFunc(p, func(q Problem) bool {
		rest, ok := strings.CutPrefix(q.Key, "sandbox.projects.")
		_, key, _ := cutLast(rest)
		return ok && slices.Contains(p, Problem{Key: "sandbox." + key, Text: q.Text})
	})
}

func parseAll[T any](list []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, one := range list {
		v, err := parse(one)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// parseMount reads "source[:target][:rw]".
func parseMount(text string) (Mount, error) {
	parts := strings.Split(text, ":")
	m := Mount{Source: parts[0], Target: parts[0]}
	rest := parts[1:]
	if n := len(rest); n > 0 && (rest[n-1] == "rw" || rest[n-1] == "ro") {
		m.Writable = rest[n-1] == "rw"
		rest = rest[:n-1]
	}
	if len(rest) == 1 {
		m.Target = rest[0]
	}
	if len(rest) > 1 || !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) {
		return Mount{}, fmt.Errorf(`%q should be an absolute path, or "source:target"; ":rw" after it lets agents write there`, text)
	}
	m.Target = filepath.Clean(m.Target)
	return m, nil
}

// parseSeed reads "from:to".
func parseSeed(text string) (Seed, error) {
	from, to, _ := strings.Cut(text, ":")
	switch {
	case !filepath.IsAbs(from):
		return Seed{}, fmt.Errorf("%q should be an absolute path, or begin with ~/", from)
	case to == "":
		return Seed{}, fmt.Errorf(`%q is not in your home; write "from:to", where "to" is a path below the home in the sandbox`, from)
	case !filepath.IsLocal(to) || filepath.Clean(to) == ".":
		return Seed{}, fmt.Errorf("%q is not a path below the home in the sandbox", to)
	}
	return Seed{From: from, To: to}, nil
}

func parseUser(user string) error {
	u, g, ok := strings.Cut(user, ":")
	_, uidErr := strconv.ParseUint(u, 10, 31)
	_, gidErr := strconv.ParseUint(g, 10, 31)
	if !ok || uidErr != nil || gidErr != nil {
		return fmt.Errorf(`%q should be numbers, "uid:gid", such as "1000:1000"`, user)
	}
	return nil
}

// engineSockets are the sockets of engines: a user who may write to one owns the engine's machine.
func (s SandboxSetting) engineSockets() []string {
	all := []string{"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"}
	if u, err := url.Parse(s.Host); err == nil && u.Scheme == "unix" && u.Path != "" {
		all = append(all, filepath.Clean(u.Path))
	}
	return all
}
