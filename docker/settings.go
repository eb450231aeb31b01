package docker

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ductor/cli"
)

// NoLimit is a value of CPUs, MemoryMB and PIDs that means no limit.
const NoLimit = -1

// ContainerSettings configures a container.
type ContainerSettings struct {
	Image        string   `toml:"image"`                    // name of the image; empty means that ductor builds one
	Pull         bool     `toml:"pull" default:"true"`      // whether to fetch a missing Image from its registry
	Network      Network  `toml:"network" default:"bridge"` // empty means NetworkBridge
	CPUs         float64  `toml:"cpus"`                     // 0 means all but one CPU of the engine's machine
	MemoryMB     int      `toml:"memory_mb"`                // memory and swap; 0 means half of the machine's memory
	PIDs         int      `toml:"pids" default:"512"`       // maximum number of processes and threads; 0 means 512
	ReadOnlyRoot bool     `toml:"read_only_root"`           // all but /tmp, /var/tmp and the home is read-only
	User         string   `toml:"user"`                     // "uid:gid"; empty means the user of this process
	Env          []string `toml:"env" check:"assignments"`  // "NAME=value", for every program in the container
	Runner       string   `toml:"runner" check:"path"`      // path of a static ductor-runner for the engine's machine
}

func (s ContainerSettings) memory() int64 { return int64(s.MemoryMB) << 20 }

// Settings configures whether and how the agents of a project run in a container.
type Settings struct {
	Mode string `toml:"mode" default:"off" check:"off|docker"`
	EngineOptions
	ContainerSettings
	BuildDir     string   `toml:"build_dir" check:"path"` // empty means ductor's own Dockerfile
	BuildNetwork Network  `toml:"build_network"`
	ImageFrom    string   `toml:"image_from"` // address of an engine that makes the image; empty means this engine
	Mounts       []string `toml:"mounts" check:"path"`
	Logins       string   `toml:"logins" default:"copy" check:"copy|none"`
	Seeds        []string `toml:"seeds" check:"path"`
	// Idle is the time after which ductor removes an unused container. 0 means never.
	Idle      time.Duration `toml:"idle" default:"24h" check:"0|1m..87600h"`
	Home      string        `toml:"home" default:"shared" check:"shared|session"`
	Isolation string        `toml:"isolation" default:"project" check:"project|conversation"`
}

// Values of Logins, Home and Isolation in Settings.
const (
	LoginsCopy            = "copy"         // ductor copies the agents' log-in files into the home
	HomeSession           = "session"      // each session has its own home
	IsolationProject      = "project"      // all conversations of a project share a container
	IsolationConversation = "conversation" // each conversation has its own container
)

func (s Settings) ParseMounts() ([]Mount, error) { return parseAll(s.Mounts, parseMount) }

// ParseSeeds parses the seeds.
func (s Settings) ParseSeeds() ([]Seed, error) { return parseAll(s.Seeds, parseSeed) }

func parseAll[T any](list []string, parse func(string) (T, error)) (all []T, err error) {
	for _, text := range list {
		one, err := parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// parseMount parses "source", optionally followed by ":target", then by ":rw" or ":ro".
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
		return Mount{}, fmt.Errorf(
			`%q should be an absolute path, or "source:target"; ":rw" after it lets agents write there`, text)
	}
	m.Target = filepath.Clean(m.Target)
	return m, nil
}

// parseSeed parses "from:to". Both parts are required.
func parseSeed(text string) (Seed, error) {
	from, to, _ := strings.Cut(text, ":")
	switch {
	case !filepath.IsAbs(from):
		return Seed{}, fmt.Errorf("%q should be an absolute path, or begin with ~/", from)
	case to == "":
		return Seed{}, fmt.Errorf(
			`%q is not in your home; write "from:to", where "to" is a path below the home in the sandbox`, from)
	case !filepath.IsLocal(to) || filepath.Clean(to) == ".":
		return Seed{}, fmt.Errorf("%q is not a path below the home in the sandbox", to)
	}
	return Seed{From: from, To: to}, nil
}

type report = func(key, format string, args ...any)

// Check implements config.checker.
func (s Settings) Check(problem func(key, format string, args ...any)) {
	if (s.Cert == "") != (s.Key == "") {
		problem("cert", "cert and key belong together; give both or none")
	}
	checkHost(problem, "host", s.Host, "unix:///path, tcp://host:port or ssh://user@host", "unix", "tcp", "ssh")
	checkHost(problem, "image_from", s.ImageFrom, "unix:///path or ssh://user@host", "unix", "ssh")
	s.checkImage(problem)
	s.checkLimits(problem)
	s.checkFiles(problem)
}

// checkHost reports a problem if host is neither empty nor the address of an engine. schemes are the permitted URL
// schemes. The text of the problem contains forms, a description of valid addresses.
func checkHost(problem report, key, host, forms string, schemes ...string) {
	if host == "" {
		return
	}
	u, err := url.Parse(host)
	switch {
	case err != nil || !slices.Contains(schemes, u.Scheme):
		problem(key, "should be %s", forms)
	case u.Scheme == "unix" && filepath.IsAbs(u.Path) && u.Host == "":
	case u.Scheme == "tcp" && u.Hostname() != "" && u.Port() != "" && u.Path == "":
	case u.Scheme == "ssh" && u.Hostname() != "" && !strings.HasPrefix(u.Hostname(), "-"):
		if _, has := u.User.Password(); has {
			problem(key, "holds a password; use a key")
		}
	default:
		problem(key, "should be %s", forms)
	}
}

func (s Settings) checkImage(problem report) {
	if s.Image != "" && s.BuildDir != "" {
		problem("image", "build_dir is set as well; keep one of the two")
	}
	if strings.ContainsFunc(s.Image, func(r rune) bool { return r <= ' ' }) || strings.HasPrefix(s.Image, "-") {
		problem("image", "%q is not the name of an image, such as ghcr.io/you/agents:1", s.Image)
	}
	const choices = `it may be "bridge", "none" or the name of a network of the engine's`
	for key, network := range map[string]Network{"network": s.Network, "build_network": s.BuildNetwork} {
		switch {
		case network == "" && key == "network":
			problem(key, "is empty; %s", choices)
		case network == "host" || strings.HasPrefix(string(network), "container:"):
			problem(key, "%q would put agents in reach of what listens on this machine alone; %s", network, choices)
		}
	}
}

func (s Settings) checkLimits(problem report) {
	if !(s.CPUs == NoLimit || s.CPUs >= 0 && s.CPUs <= 1024) { // this form also rejects NaN
		problem("cpus", "%v is out of bounds; it may be 0 to 1024, or -1 for all", s.CPUs)
	}
	const outOfBounds = "%d is out of bounds; it may be 0 for %s, %d to %d, or -1 for no limit"
	if n := s.MemoryMB; n != 0 && n != NoLimit && (n < 64 || n > 1<<24) {
		problem("memory_mb", outOfBounds, n, "half of the machine's", 64, 1<<24)
	}
	if n := s.PIDs; n != 0 && n != NoLimit && (n < 16 || n > 1<<22) {
		problem("pids", outOfBounds, n, "the default", 16, 1<<22)
	}
	if s.User != "" {
		if _, _, err := parseUser(s.User); err != nil {
			problem("user", "%v", err)
		}
	}
}

func (s Settings) checkFiles(problem report) {
	targets := map[string]bool{}
	for i, text := range s.Mounts {
		key := fmt.Sprintf("mounts[%d]", i)
		m, err := parseMount(text)
		switch {
		case err != nil:
			problem(key, "%v", err)
		case s.Exposes(m.Source):
			problem(key, "with %s the socket of Docker would be in the sandbox, "+
				"and whoever may use it owns the machine; leave it out", m.Source)
		case reserved(m.Target):
			problem(key, "%s is the sandbox's own; choose another place", m.Target)
		case targets[m.Target]:
			problem(key, "two of them are at %s", m.Target)
		}
		targets[m.Target] = true
	}
	for i, text := range s.Seeds {
		if _, err := parseSeed(text); err != nil {
			problem(fmt.Sprintf("seeds[%d]", i), "%v", err)
		}
	}
}

// Exposes reports whether a mount of dir would contain the socket of an engine. Whoever can write to the socket
// controls the machine.
func (s Settings) Exposes(dir string) bool {
	sockets := []string{
		"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
	}
	if u, err := url.Parse(s.Host); err == nil && u.Scheme == "unix" && u.Path != "" {
		sockets = append(sockets, filepath.Clean(u.Path))
	}
	return slices.ContainsFunc(sockets, func(socket string) bool { return cli.Lies(socket, dir) })
}
