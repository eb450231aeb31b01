package environment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ductor/cli"
	"ductor/cli/service"
	"ductor/docker"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// Directories in the storage directory.
const (
	UploadsDir = "uploads"
	PromptsDir = "prompts" // system prompts; deleted a day after their last use
	GeminiDir  = "gemini"  // settings for starting Gemini
	ProbesDir  = "probes"  // ACP agents that only report their log-in and models run here; stays empty
	HomesDir   = "homes"   // home directories of sessions on this machine
	GitDir     = "git"     // indexes and settings for snapshots of repositories on this machine
	dockerDir  = "docker"  // files in which ductor stores facts about containers
	seedsDir   = "seeds"   // below dockerDir: files for sandboxes, derived from files of the user who runs ductor
	programDir = "program" // a ductor-runner that ductor itself has built
)

// Sandboxes contains the sandboxes of a configuration.
type Sandboxes struct {
	cfg        config.Config
	log        *slog.Logger
	engines    map[docker.EngineOptions]*docker.Engine
	configured []*Sandbox // sorted by name
	instances  instances
	policy     Policy
	small      smallProgram
}

// Sandbox is a sandbox in which agents run. It belongs to one project, or to all directories that have no sandbox of
// their own. If the setting is docker.IsolationConversation, each conversation has its own container, and a Sandbox can
// also belong to a single conversation.
type Sandbox struct {
	Name     string
	Setting  docker.Settings
	Engine   *docker.Engine   // nil if the sandbox cannot be used
	Launcher *docker.Launcher // nil if the sandbox cannot be used
	Err      error            // why the sandbox cannot be used, as an error of package docker; otherwise nil
	Seeds    []docker.Seed
	folders  []folder       // the directories in which agents work, each a mount
	files    []folder       // seeds that agents can replace, and such mounts of an engine on this machine
	mounts   []docker.Mount // mounts of the setting
	source   *docker.Engine // the engine from which ductor copies the image; nil if it does not copy the image
	small    func(context.Context) error
}

// MakeRunner builds ductor-runner if it is missing. Without this call, the first start of a container would have to
// wait for the build.
func (b *Sandbox) MakeRunner(ctx context.Context) error {
	if b.small == nil {
		return nil
	}
	return b.small(ctx)
}

// matters reports whether ductor should prepare the sandbox, and warn if it does not work. It returns true if agents
// use the sandbox by default, or if the sandbox already has a container. Every other sandbox is used only by jobs that
// require it.
func (b *Sandbox) matters() bool {
	return b.Setting.Mode == orchestrator.SandboxDocker || b.Launcher != nil && b.Launcher.Made()
}

// inSandbox is an environment variable for Claude. Without the variable, Claude refuses to bypass permissions as root.
const inSandbox = "IS_SANDBOX=1"

// OpenSandboxes opens the configured sandboxes, where policy is the policy of the configuration. It does not contact an
// engine. If a sandbox cannot be used, OpenSandboxes returns no error, but the turns in this sandbox fail.
func OpenSandboxes(cfg config.Config, policy Policy, log *slog.Logger) (*Sandboxes, error) {
	s := &Sandboxes{cfg: cfg, log: log, engines: map[docker.EngineOptions]*docker.Engine{}, policy: policy}
	if !asksForSandbox(cfg) {
		return s, nil
	}
	for _, dir := range append(s.shared(), s.path(dockerDir)) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a directory for the sandboxes: %w", err)
		}
	}
	s.small = findSmall(cfg)
	for _, name := range append([]string{config.DefaultSandbox}, slices.Sorted(maps.Keys(cfg.Sandbox.Projects))...) {
		b := &Sandbox{Name: name, Setting: cfg.Sandbox.Named(name)}
		if b.Err = s.open(b); b.Err != nil {
			log.Warn("a sandbox cannot be used", "sandbox", name, "err", b.Err)
		} else if err := b.CheckFolders(); err != nil {
			log.Warn("A folder of a sandbox cannot be mounted, so no container starts.", "sandbox", name, "err", err)
		}
		s.configured = append(s.configured, b)
	}
	s.reopen()
	return s, nil
}

// CheckEngine checks whether the engine of the default sandbox answers. It creates nothing.
func CheckEngine(ctx context.Context, cfg config.Config) error {
	e, err := docker.Connect(engineOptions(cfg.Sandbox.Settings))
	if err != nil {
		return err
	}
	return errors.Join(e.Check(ctx), e.Close())
}

func engineOptions(set docker.Settings) docker.EngineOptions {
	set.Host = cmp.Or(set.Host, docker.DefaultHost)
	return set.EngineOptions
}

// asksForSandbox reports whether a project or job of the configuration runs in a sandbox.
func asksForSandbox(cfg config.Config) bool {
	asked := cfg.Sandbox.Mode == orchestrator.SandboxDocker
	for _, p := range cfg.Sandbox.Projects {
		asked = asked || p.Mode == orchestrator.SandboxDocker
	}
	for _, j := range cfg.Jobs {
		asked = asked || j.Sandbox == orchestrator.SandboxDocker
	}
	for _, hook := range cfg.Webhooks.Hooks {
		asked = asked || hook.Sandbox == orchestrator.SandboxDocker
	}
	return asked
}

func (s *Sandboxes) path(name string) string { return filepath.Join(s.cfg.Storage.Dir, name) }

// shared returns the directories of ductor that agents in containers read.
func (s *Sandboxes) shared() []string {
	return []string{s.path(UploadsDir), s.path(PromptsDir), s.path(GeminiDir), s.path(ProbesDir)}
}

func (s *Sandboxes) open(b *Sandbox) (err error) {
	set := b.Setting
	b.Engine, err = s.engine(engineOptions(set))
	if err == nil && set.ImageFrom != "" {
		b.source, err = s.engine(docker.EngineOptions{Host: set.ImageFrom, SSHConfig: set.SSHConfig})
	}
	if err != nil {
		return wrongSetting(b.Name, err)
	}
	if b.Seeds, err = seedsOf(set, s.cfg.Agents, s.path(filepath.Join(dockerDir, seedsDir))); err == nil {
		b.mounts, err = mountsOf(set)
	}
	if err != nil {
		return wrongSetting(b.Name, err)
	}
	s.fixFiles(b)
	return s.launch(b)
}

func (s *Sandboxes) launch(b *Sandbox) (err error) {
	if b.Launcher, err = docker.Open(s.options(b)); err != nil {
		return wrongSetting(b.Name, err)
	}
	return nil
}

func wrongSetting(name string, err error) error {
	return &docker.Error{Reason: err.Error(),
		Fix: fmt.Sprintf("correct the settings of the sandbox %s, then restart ductor", name), Err: err}
}

// engine returns the engine with the given settings. Sandboxes with the same settings share an engine.
func (s *Sandboxes) engine(key docker.EngineOptions) (*docker.Engine, error) {
	if e := s.engines[key]; e != nil {
		return e, nil
	}
	e, err := docker.Connect(key)
	if err == nil {
		s.engines[key] = e
	}
	return e, err
}

func (s *Sandboxes) options(b *Sandbox) docker.Options {
	set := b.Setting
	o := docker.Options{
		Engine: b.Engine, Owner: Owner(s.cfg), Name: b.Name, Dir: s.path(dockerDir),
		ContainerSettings: set.ContainerSettings,
		Source:            b.source, Shared: s.shared(), Seeds: b.Seeds, Timing: s.cfg.Agents.Timing, Logger: s.log,
	}
	b.folders = s.folders(b)
	b.mountFolders(&o)
	o.Mounts, o.CheckMounts = append(o.Mounts, b.mounts...), b.CheckFolders
	o.Env = append([]string{inSandbox}, set.Env...)
	if set.Runner == "" {
		o.Runner, o.MakeRunner = s.small.path, s.small.make
		b.small = s.small.make
	}
	if set.Image == "" {
		o.Build = &docker.Build{Dir: set.BuildDir, Network: set.BuildNetwork}
	}
	if set.Home == docker.HomeSession {
		o.HomeSeeds = b.Seeds
	}
	return o
}

// Owner returns the ID with which this installation of ductor marks its containers: a hash of the storage directory.
func Owner(cfg config.Config) string {
	sum := sha256.Sum256([]byte(cfg.Storage.Dir))
	return hex.EncodeToString(sum[:6])
}

// folders returns the directories in which agents work in a sandbox. The sandbox of a conversation has those of its
// project.
func (s *Sandboxes) folders(b *Sandbox) []folder {
	if f, ok := s.policy.folders[cli.Sandbox(b.Name).Name()]; ok {
		return []folder{f}
	}
	return slices.DeleteFunc(slices.Clone(s.policy.roots), func(root folder) bool {
		_, err := os.Stat(root.dir)
		// Omit a directory that ductor cannot see, because no agent can work there. If the engine is on another machine,
		// do not omit the directory, because it may exist there.
		return b.Engine.Local() && err != nil
	})
}

// fixFiles resolves the links of mounts and seeds that agents can replace.
func (s *Sandboxes) fixFiles(b *Sandbox) {
	fix := func(path *string) bool {
		f, ok := s.policy.fixed(*path)
		if ok {
			*path, b.files = f.real, append(b.files, f)
		}
		return ok
	}
	for i := range b.mounts {
		if b.Engine.Local() {
			fix(&b.mounts[i].Source)
		}
	}
	for i := range b.Seeds {
		if seed := &b.Seeds[i]; !seed.Optional { // an optional seed is a log-in in the user's home
			seed.Fixed = fix(&seed.From)
		}
	}
}

// mountFolders adds the mounts of b.folders to options. A directory with symbolic links appears twice in the container:
// as configured, and with the links resolved. The container needs both paths, because the links do not exist there.
//
// The engine follows links in the source of a mount. So on this machine, the source is always the resolved path, and
// CheckFolders is called before the engine mounts it. On another machine, ductor cannot resolve links.
func (b *Sandbox) mountFolders(o *docker.Options) {
	seen := map[string]bool{}
	add := func(source, target string) {
		switch {
		case seen[target]:
			return
		case source == target:
			o.Projects = append(o.Projects, target)
		default:
			o.Mounts = append(o.Mounts, docker.Mount{Source: source, Target: target, Writable: true})
		}
		seen[target] = true
	}
	for _, f := range b.folders {
		if b.Engine.Local() {
			add(f.real, f.real)
			add(f.real, f.dir)
			continue
		}
		if _, err := os.Stat(f.dir); err == nil { // a link above a missing directory may not exist on the other machine
			add(f.real, f.real)
		}
		add(f.dir, f.dir)
	}
}

// CheckFolders returns an error for users if links lead a directory, mount or seed of the sandbox elsewhere than ductor
// allowed when it read the configuration. An agent may have created such links, to have another directory mounted into
// the container. CheckFolders does not check directories on another machine.
func (b *Sandbox) CheckFolders() error {
	all := b.files
	if b.Engine != nil && b.Engine.Local() {
		all = slices.Concat(b.folders, b.files)
	}
	for _, f := range all {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

func mountsOf(set docker.Settings) ([]docker.Mount, error) {
	mounts, err := set.ParseMounts()
	for _, m := range mounts {
		if info, err := os.Stat(m.Source); err == nil && info.Mode().Type() == fs.ModeSocket &&
			filepath.Base(cli.RealPath(m.Source)) == "docker.sock" {
			return nil, fmt.Errorf("mounts: %s is the socket of Docker: who may use it owns the machine", m.Source)
		}
	}
	return mounts, err
}

// Configured returns the configured sandboxes, without those of single conversations.
func (s *Sandboxes) Configured() []*Sandbox { return s.configured }

// Policy returns the policy that chooses the environment for a directory.
func (s *Sandboxes) Policy() Policy { return s.policy }

// RunLauncher returns a launcher that starts agents in the sandbox. If the sandbox cannot be used, every method of the
// launcher returns b.Err.
func (b *Sandbox) RunLauncher() cli.Launcher {
	if b.Launcher == nil {
		return unavailable{b.Err}
	}
	return b.Launcher
}

// Homes gives access to the homes of sessions in the sandbox. It returns nil if sessions share one home, or if the
// sandbox cannot be used.
func (b *Sandbox) Homes() service.Homes {
	if b.Launcher == nil || b.Setting.Home != docker.HomeSession {
		return nil
	}
	return b.Launcher
}

// Close closes the launchers and the engines. Agents in the sandboxes continue.
func (s *Sandboxes) Close() error {
	var errs []error
	for _, b := range s.All() {
		if b.Launcher != nil {
			errs = append(errs, b.Launcher.Close())
		}
	}
	for _, e := range s.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// unavailable is the launcher of a sandbox that cannot be used.
type unavailable struct{ why error }

var _ cli.Launcher = unavailable{}

func (n unavailable) Prepare(context.Context) error                           { return n.why }
func (n unavailable) Doing() string                                           { return "" }
func (n unavailable) Help(context.Context, []string, ...string) error         { return n.why }
func (n unavailable) Start(context.Context, cli.Command) (cli.Process, error) { return nil, n.why }
func (n unavailable) LookPath(string) (string, error)                         { return "", n.why }
func (n unavailable) Left(context.Context) ([]cli.LeftRun, error)             { return nil, n.why }
func (n unavailable) Discard(context.Context, cli.RunID) error                { return n.why }
func (n unavailable) Settled(cli.TurnID)                                      {}
func (n unavailable) Attach(context.Context, cli.LeftRun, int64) (cli.Process, error) {
	return nil, n.why
}
