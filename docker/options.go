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

// Where things are in a container.
const (
	stateDir   = "/ductor"
	homeDir    = stateDir + "/home"
	homesDir   = homeDir + "/sessions"
	runsDir    = stateDir + "/runs"
	programDir = "/opt/ductor"
	tempDir    = "/tmp"

	programFile = programDir + "/ductor-runner"
)

// ToolProgram is the command by which an agent in a container reaches tools that ServeTools serves.
func ToolProgram(verb string) (path string, args []string) {
	return programFile, []string{verb, runsDir}
}

// Network is what a container may reach.
type Network string

// The networks that are always there; any other value names one of the engine's.
const (
	NetworkNone   Network = "none"   // loopback only
	NetworkBridge Network = "bridge" // the world, behind the engine's address translation
)

// Mount is a directory or file of the engine's machine that is seen in the container.
type Mount struct {
	Source   string
	Target   string // the same path if empty
	Writable bool
}

// Seed is a file or directory of this machine that is copied below a home: credentials, a minimal configuration.
// Links in a directory are left out.
type Seed struct {
	From     string
	To       string    // below the home
	Optional bool      // not being there is no error
	Agent    cli.Agent // copied when that agent is started with the home, a probe not counted; empty: with the home
}

// Options of a Launcher. Engine, Owner, Name, Dir, Runner and one of Image and Build are required.
type Options struct {
	Engine *Engine `json:"-"`
	// Owner tells the containers of this installation from those of others: letters and digits, made of where its
	// storage is.
	Owner string
	// Name is what the container is for: a project, or a conversation. There is one container to a name.
	Name string
	// Dir is a directory of this machine for a few notes about containers; made if it is not there.
	Dir string
	// Runner is the file of ductor-runner, a static program for the engine's machine.
	Runner string
	// MakeRunner sees that the file Runner is there and of this version, before an image is made with it. Nil for nothing to do.
	MakeRunner func(context.Context) error `json:"-"`

	Image string // the image as the engine knows it; it needs nothing of ours, not even a shell
	Pull  bool   // fetch Image from its registry when it is not there
	Build *Build // make the image, when it is not there
	// Source is an engine that fetches or makes the image in place of Engine, and sends it there: for one that reaches
	// no registry. Nil for none.
	Source *Engine `json:"-"`

	// Projects are directories the agents work in: writable, at the same path, which must be there on the engine's
	// machine. Nothing else is assumed to be shared with it.
	Projects []string
	Mounts   []Mount
	// Shared are directories of ductor's own whose files agents read: uploads, prompts. In a container they begin empty,
	// at the same path; Bring puts into them what a turn names.
	Shared []string
	// Seeds are copied into the agents' home when a container is made; what is there already is replaced. Those of one
	// agent are copied when it is started, where they are newer than what is there.
	Seeds []Seed
	// HomeSeeds are copied into each session's home when Home makes it, those of one agent when it is started, and again
	// when they are newer than what is there: an agent that renewed its log-in keeps it.
	HomeSeeds []Seed

	User         string  // "uid:gid"; default: those of this process
	CPUs         float64 // how many; 0 is all of the engine's machine but one, negative is all
	Memory       int64   // bytes, swap included; 0 is half of what the engine's machine has, negative is no limit
	PIDs         int64   // processes and threads; default 512, negative is no limit
	Network      Network // default NetworkBridge
	ReadOnlyRoot bool    // the image cannot be written to; /tmp, /var/tmp and the home can
	// StateSize makes the home and the runs forgotten when the container stops, and that many bytes each at most; 0
	// keeps them in a volume.
	StateSize int64
	Env       []string // "NAME=value" added to every program's environment

	MaxAge      time.Duration // as in host.Options, like the next two
	OrphanAfter time.Duration
	Grace       time.Duration
	Logger      *slog.Logger `json:"-"`
}

const (
	defaultPIDs = 512
	tmpSize     = 1 << 30 // bytes of /tmp when ReadOnlyRoot
)

// withDefaults fills in what is not said, and says what is wrong.
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

// reserved says whether a mount would hide what is ours, or the engine itself.
func reserved(target string) bool {
	target = filepath.Clean(target)
	for _, own := range []string{"/", stateDir, runsDir, programDir, "/proc", "/sys", "/dev", "/var/run/docker.sock", "/run/docker.sock"} {
		if target == own || strings.HasPrefix(target, programDir+"/") || strings.HasPrefix(target, runsDir+"/") {
			return true
		}
	}
	return false
}

// mounts are all of them, each with a target.
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
		return 0, 0, fmt.Errorf("user %q is not of the form uid:gid", user)
	}
	return uid, gid, nil
}

func notPlain(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
}

// environment is what a program in the container gets: what was meant for it, without what describes this machine.
// A home below the agents' is meant for it.
func (o Options) environment(given []string, dirs string) []string {
	var env []string
	home := homeDir
	for _, entry := range given {
		name, value, _ := strings.Cut(entry, "=")
		if name == "HOME" && strings.HasPrefix(path.Clean(value), homeDir+"/") {
			home = path.Clean(value)
		}
		if !ofThisMachine(name) {
			env = append(env, entry)
		}
	}
	return append(append(env, "HOME="+home, "PATH="+dirs, "TMPDIR="+tempDir), o.Env...)
}

// portable are those of cli.BaseEnv that mean the same in a container.
func portable() []string {
	return []string{
		"TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "LC_*", "TZ",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"GIT_AUTHOR_*", "GIT_COMMITTER_*",
	}
}

func ofThisMachine(name string) bool {
	return matches(cli.BaseEnv(), name) && !matches(portable(), name)
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		prefix, wild := strings.CutSuffix(p, "*")
		if p == name || wild && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
