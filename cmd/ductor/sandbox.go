package main

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
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
)

// dockerDir is for notes on containers, inside the storage directory.
const dockerDir = "docker"

// seedsDir is for what is made of the owner's files for sandboxes, inside dockerDir.
const seedsDir = "seeds"

// sandboxes are the environments besides this machine in which a configuration runs agents.
type sandboxes struct {
	cfg        config.Config
	log        *slog.Logger
	engines    map[docker.EngineOptions]*docker.Engine
	configured []*sandbox // as configured, in order of their names
	parts      parts
	policy     policy
}

// sandbox is the sandbox of a project or of all directories without one, or the part of it that a conversation has.
type sandbox struct {
	name     string
	setting  config.SandboxSetting
	engine   *docker.Engine   // nil if it cannot be used
	source   *docker.Engine   // the engine its image comes from; nil for none
	launcher *docker.Launcher // nil if it cannot be used
	why      error            // why it cannot be used: an error of package docker
	seeds    []docker.Seed
}

// matters says whether agents run, ran or may run in a sandbox. A sandbox of a project without one serves jobs that ask
// for it.
func (b *sandbox) matters() bool {
	return b.setting.Mode == config.SandboxDocker || b.launcher != nil && b.launcher.Made()
}

// inSandbox tells Claude that it is in a container: it refuses to bypass permissions as root elsewhere.
const inSandbox = "IS_SANDBOX=1"

// openSandboxes makes the sandboxes of the configuration without a call to an engine. A sandbox that cannot be used
// refuses its turns, and is no error.
func openSandboxes(cfg config.Config, log *slog.Logger) (*sandboxes, error) {
	s := &sandboxes{cfg: cfg, log: log, engines: map[docker.EngineOptions]*docker.Engine{}, policy: newPolicy(cfg)}
	if !asksForSandbox(cfg) {
		return s, nil
	}
	for _, dir := range append(s.shared(), s.path(dockerDir)) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a directory for the sandboxes: %w", err)
		}
	}
	for _, name := range append([]string{config.DefaultSandbox}, slices.Sorted(maps.Keys(cfg.Sandbox.Projects))...) {
		b := &sandbox{name: name, setting: cfg.Sandbox.Named(name)}
		if b.why = s.open(b); b.why != nil {
			log.Warn("a sandbox cannot be used", "sandbox", name, "err", b.why)
		}
		s.configured = append(s.configured, b)
	}
	s.reopen()
	return s, nil
}

// asksForSandbox says whether the configuration runs anything in a sandbox.
func asksForSandbox(cfg config.Config) bool {
	asked := cfg.Sandbox.Mode == config.SandboxDocker
	for _, p := range cfg.Sandbox.Projects {
		asked = asked || p.Mode == config.SandboxDocker
	}
	for _, j := range cfg.Jobs {
		asked = asked || j.Sandbox == config.SandboxDocker
	}
	for _, hook := range cfg.Webhooks.Hooks {
		asked = asked || hook.Sandbox == config.SandboxDocker
	}
	return asked
}

func (s *sandboxes) path(name string) string { return filepath.Join(s.cfg.Storage.Dir, name) }

// shared are the directories of ductor's own that agents read.
func (s *sandboxes) shared() []string {
	return []string{s.path(uploadsDir), s.path(promptsDir), s.path(geminiDir)}
}

func (s *sandboxes) open(b *sandbox) (err error) {
	set := b.setting
	b.engine, err = s.engine(docker.EngineOptions{
		Host: cmp.Or(set.Host, docker.DefaultHost), CA: set.CA, Cert: set.Cert, Key: set.Key, SSHConfig: set.SSHConfig,
	})
	if err == nil && set.ImageFrom != "" {
		b.source, err = s.engine(docker.EngineOptions{Host: set.ImageFrom, SSHConfig: set.SSHConfig})
	}
	if err != nil {
		return wrongSetting(b.name, err)
	}
	if b.seeds, err = seedsOf(set, s.cfg.Agents, s.path(filepath.Join(dockerDir, seedsDir))); err != nil {
		return wrongSetting(b.name, err)
	}
	return s.launch(b)
}

// launch makes the launcher of a sandbox.
func (s *sandboxes) launch(b *sandbox) error {
	o, err := s.options(b)
	if err == nil {
		b.launcher, err = docker.Open(o)
	}
	if err != nil {
		return wrongSetting(b.name, err)
	}
	return nil
}

func wrongSetting(name string, err error) error {
	return &docker.Error{Reason: err.Error(), Fix: fmt.Sprintf("correct the settings of the sandbox %s, and start ductor anew", name), Err: err}
}

// engine gives one engine to all that have the same settings of it.
func (s *sandboxes) engine(key docker.EngineOptions) (*docker.Engine, error) {
	if e := s.engines[key]; e != nil {
		return e, nil
	}
	e, err := docker.Connect(key)
	if err == nil {
		s.engines[key] = e
	}
	return e, err
}

// options translates the setting of a sandbox.
func (s *sandboxes) options(b *sandbox) (docker.Options, error) {
	set, agents := b.setting, s.cfg.Agents
	mounts, err := mountsOf(set)
	if err != nil {
		return docker.Options{}, err
	}
	o := docker.Options{
		Engine: b.engine, Owner: s.owner(), Name: b.name, Dir: s.path(dockerDir), Supervisor: supervisorPath(set),
		Image: set.Image, Pull: set.Pull, Source: b.source, Projects: s.projects(b), Mounts: mounts, Shared: s.shared(), Seeds: b.seeds,
		User: set.User, CPUs: set.CPUs, Memory: int64(set.MemoryMB) << 20, PIDs: int64(set.PIDs), Network: docker.Network(set.Network),
		ReadOnlyRoot: set.ReadOnlyRoot, Env: append([]string{inSandbox}, set.Env...),
		MaxAge: agents.StaleAfter, OrphanAfter: agents.OrphanAfter, Grace: agents.Grace, Logger: s.log,
	}
	if set.Image == "" {
		o.Build = &docker.Build{Dir: set.BuildDir, Network: docker.Network(set.BuildNetwork)}
	}
	if set.Home == config.HomeSession {
		o.HomeSeeds = b.seeds
	}
	return o, nil
}

// owner names the owner of containers by a hash of the storage directory, so that two ductors keep theirs apart.
func (s *sandboxes) owner() string {
	sum := sha256.Sum256([]byte(s.cfg.Storage.Dir))
	return hex.EncodeToString(sum[:6])
}

// supervisorPath is the path of the program that runs in every container.
func supervisorPath(set config.SandboxSetting) string {
	const name = "ductor-supervisor"
	if set.Supervisor != "" {
		return set.Supervisor
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), name)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "" // the launcher reports it when it needs the program
	}
	return found
}

// projects lists the directories that agents work in, as the configuration names them and with links resolved: a
// container does not have the links.
func (s *sandboxes) projects(b *sandbox) []string {
	var named []string
	if p, ok := s.cfg.Sandbox.Projects[cli.Sandbox(b.name).Name()]; ok {
		named = []string{p.Dir}
	} else {
		named = slices.DeleteFunc(slices.Clone(s.cfg.Projects.Roots), func(root string) bool {
			_, err := os.Stat(root)
			return b.engine.Local() && errors.Is(err, fs.ErrNotExist) // no agent can work there
		})
	}
	var dirs []string
	for _, dir := range named {
		if real := realDir(dir); !slices.Contains(dirs, real) {
			dirs = append(dirs, real)
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func mountsOf(set config.SandboxSetting) ([]docker.Mount, error) {
	all, err := set.ParseMounts()
	var mounts []docker.Mount
	for _, m := range all {
		if info, err := os.Stat(m.Source); err == nil && info.Mode().Type() == fs.ModeSocket && filepath.Base(realDir(m.Source)) == "docker.sock" {
			return nil, fmt.Errorf("mounts: %s is the socket of Docker: who may use it owns the machine", m.Source)
		}
		mounts = append(mounts, docker.Mount{Source: m.Source, Target: m.Target, Writable: m.Writable})
	}
	return mounts, err
}

// site gives a sandbox as cli.Service takes it.
func (a *app) site(b *sandbox) cli.RunEnv {
	site := cli.RunEnv{Sandbox: cli.Sandbox(b.name)}
	g := runEnv{
		inside: true, readFile: seeded(b.seeds),
		prompts: a.sandboxes.path(promptsDir), gemini: a.sandboxes.path(geminiDir),
	}
	if b.launcher == nil {
		g.launcher = unavailable{b.why}
	} else {
		g.launcher = b.launcher
		if b.setting.Home == config.HomeSession {
			site.Homes = b.launcher
		}
	}
	site.Launcher, site.Providers = g.launcher, a.providers(g)
	return site
}

// sites lists all open sandboxes.
func (a *app) sites() (all []cli.RunEnv) {
	for _, b := range a.sandboxes.all() {
		all = append(all, a.site(b))
	}
	return all
}

// openSite opens the part of a sandbox that a conversation has; false where the configuration wants none.
func (a *app) openSite(in cli.Sandbox) (cli.RunEnv, bool) {
	b := a.sandboxes.find(in)
	if b == nil {
		return cli.RunEnv{}, false
	}
	return a.site(b), true
}

// close closes the launchers and the engines. Agents in the sandboxes go on.
func (s *sandboxes) close() error {
	var errs []error
	for _, b := range s.all() {
		if b.launcher != nil {
			errs = append(errs, b.launcher.Close())
		}
	}
	for _, e := range s.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// unavailable is the launcher of a sandbox that cannot be used: each of its methods returns the reason.
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
func (n unavailable) Knows(time.Time) bool                                    { return false }
func (n unavailable) Attach(context.Context, cli.RunID, int64) (cli.Process, error) {
	return nil, n.why
}
