package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/cli"
)

// Paths in a container.
const (
	stateDir   = "/ductor"
	homeDir    = stateDir + "/home"
	homesDir   = homeDir + "/sessions"
	runsDir    = stateDir + "/runs"
	programDir = "/opt/ductor"
	tempDir    = "/tmp"

	programFile = programDir + "/ductor-runner"
)

// ToolProgram returns the command through which agents in a container use the tools of runner.Client.ServeTools.
func ToolProgram(verb string) (path string, args []string) {
	return programFile, []string{verb, runsDir}
}

// Network is the network of a container.
type Network string

// Predefined networks. Any other value is the name of a network in the engine.
const (
	NetworkNone   Network = "none"   // no network besides the loopback interface
	NetworkBridge Network = "bridge" // all addresses, through the engine's address translation
)

// Mount makes a directory or file of the engine's machine visible in the container.
type Mount struct {
	Source   string
	Target   string // path in the container; empty means Source
	Writable bool
}

// Seed is a file or a directory of this machine that ductor copies into a home in the container, such as credentials.
// If it is a directory, links in it are ignored.
type Seed struct {
	From     string
	To       string // path in the home
	Optional bool   // From may be missing
	// Agent is the agent that needs the seed. ductor copies the seed whenever this agent starts in the home, but not
	// for a probe (see cli.Purpose.Mode). If Agent is empty, ductor copies the seed when it creates the home.
	Agent cli.Agent
}

// Options configures a Launcher. Engine, Owner, Name, Dir, Runner and either Image or Build are required.
type Options struct {
	Engine *Engine `json:"-"`
	// Owner distinguishes the containers of this installation of ductor from others. It consists of letters and digits.
	Owner string
	// Name is the name of the sandbox, which belongs to a project or a conversation. Each name has one container.
	Name string
	// Dir is a directory of this machine for notes about containers. Open creates it.
	Dir string
	// MakeRunner creates or updates the file Runner. ductor calls it before it adds the file to an image. MakeRunner
	// may be nil.
	MakeRunner func(context.Context) error `json:"-"`
	// CheckMounts returns an error if the engine must not mount a directory now, for example because an agent replaced
	// it by a link. ductor calls it before the engine creates or starts the container, and again right after the start.
	// The Launcher returns the error as the cause of a *cli.Failure. CheckMounts may be nil.
	CheckMounts func() error `json:"-"`

	ContainerSettings
	Build *Build // how to build the image; nil if Image is set
	// Source is another engine that fetches or builds the image and sends it to Engine. It is for an Engine without
	// access to a registry. Source may be nil.
	Source *Engine `json:"-"`

	// Projects lists the agents' working directories. They are mounted at the same paths, and agents can write to them.
	// They must exist on the engine's machine, which need not be this machine.
	Projects []string
	Mounts   []Mount
	// Shared lists directories of ductor with files for agents, such as uploads and prompts. In a new container, they
	// exist at the same paths, but are empty. Bring copies the files that a turn needs.
	Shared []string
	// Seeds are copied into the agents' common home. Those without an Agent are copied when a container is created, and
	// replace existing files. Those with an Agent are copied when that agent starts, and replace only older files.
	Seeds []Seed
	// HomeSeeds are copied into each session's home, at the time that Seed.Agent describes. They replace only older
	// files, so that an agent keeps a log-in that it has renewed.
	HomeSeeds []Seed

	// StateSize limits the home and the directory of runs to this number of bytes each. Both are then in memory, and
	// their contents are lost when the container stops. 0 means no limit; both are then in a volume.
	StateSize int64

	// MaxAway is how long ductor tries to reach the container after the connection to it broke. Then it gives up the
	// runs there. 0 means 10 s.
	MaxAway time.Duration

	cli.Timing              // documented in host.Options
	Logger     *slog.Logger `json:"-"`
}

const (
	defaultPIDs = 512
	tmpSize     = 1 << 30 // size of /tmp in bytes if ReadOnlyRoot is set
)

// withDefaults returns the options with defaults for missing values. It returns an error if an option is invalid.
func (o Options) withDefaults() (Options, error) {
	if o.User == "" {
		o.User = strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())
	}
	if o.PIDs == 0 {
		o.PIDs = defaultPIDs
	}
	if o.Network == "" {
		o.Network = NetworkBridge
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, o.check()
}

func (o Options) check() error {
	switch {
	case o.Engine == nil:
		return errors.New("no engine is given")
	case o.Owner == "" || strings.ContainsFunc(o.Owner, notPlain):
		return fmt.Errorf("owner %q is not made of letters and digits", o.Owner)
	case o.Name == "":
		return errors.New("the sandbox has no name")
	case o.Dir == "":
		return errors.New("the sandbox has no directory for notes")
	case (o.Image == "") == (o.Build == nil):
		return errors.New("either an image is named or one is built")
	case len(o.Seeds) > 0 && o.StateSize > 0:
		return errors.New("a home of limited size cannot be seeded: mount what it needs")
	}
	if _, _, err := parseUser(o.User); err != nil {
		return err
	}
	for _, m := range o.mounts() {
		if !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) {
			return fmt.Errorf("mount of %q at %q: not an absolute path", m.Source, m.Target)
		}
		if reserved(m.Target) {
			return fmt.Errorf("mount of %q at %q: that place is taken", m.Source, m.Target)
		}
	}
	for _, dir := range o.Shared {
		if !filepath.IsAbs(dir) || reserved(dir) {
			return fmt.Errorf("shared directory %q: not an absolute path, or that place is taken", dir)
		}
	}
	for _, s := range slices.Concat(o.Seeds, o.HomeSeeds) {
		if !filepath.IsLocal(s.To) {
			return fmt.Errorf("seed %q is not below the home", s.To)
		}
	}
	return nil
}

// reserved reports whether users must not mount anything at target. A mount there would hide directories that ductor or
// the system needs, or would let agents control the engine through its socket.
func reserved(target string) bool {
	for _, own := range []string{"/proc", "/sys", "/dev", programDir, runsDir} {
		if cli.Lies(target, own) {
			return true
		}
	}
	taken := []string{"/", stateDir, homeDir, "/var/run/docker.sock", "/run/docker.sock"}
	return slices.Contains(taken, filepath.Clean(target))
}

// mounts returns the mounts of Projects and Mounts. Each has a target.
func (o Options) mounts() []Mount {
	var all []Mount
	for _, dir := range o.Projects {
		all = append(all, Mount{Source: dir, Target: dir, Writable: true})
	}
	for _, m := range o.Mounts {
		if m.Target == "" {
			m.Target = m.Source
		}
		all = append(all, m)
	}
	return all
}

func parseUser(user string) (uid, gid int, err error) {
	u, g, ok := strings.Cut(user, ":")
	uid, uidErr := strconv.Atoi(u)
	gid, gidErr := strconv.Atoi(g)
	if !ok || uidErr != nil || gidErr != nil || uid < 0 || gid < 0 {
		return 0, 0, fmt.Errorf(`%q should be numbers, "uid:gid", such as "1000:1000"`, user)
	}
	return uid, gid, nil
}

func notPlain(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
}

// environment returns the environment of a program in the container. It removes the variables from agentEnv that
// describe this machine, and adds the container's own variables. It keeps HOME if HOME is a directory below the agents'
// home. searchPath is the value of PATH.
func (o Options) environment(agentEnv []string, searchPath string) []string {
	var env []string
	home := homeDir
	for _, entry := range agentEnv {
		name, value, _ := strings.Cut(entry, "=")
		if name == "HOME" && strings.HasPrefix(path.Clean(value), homeDir+"/") {
			home = path.Clean(value)
		}
		if !isMachineSpecific(name) {
			env = append(env, entry)
		}
	}
	return append(append(env, "HOME="+home, "PATH="+searchPath, "TMPDIR="+tempDir), o.Env...)
}

// portableVars returns the names of those variables in cli.BaseEnv whose values are also valid in a container.
func portableVars() []string {
	return []string{
		"TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "LC_*", "TZ",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"GIT_AUTHOR_*", "GIT_COMMITTER_*",
	}
}

func isMachineSpecific(name string) bool {
	return matchesAny(cli.BaseEnv(), name) && !matchesAny(portableVars(), name)
}

func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		prefix, wild := strings.CutSuffix(p, "*")
		if p == name || wild && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
