package main

import (
	"cmp"
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

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
)

// dockerDir is for notes on containers, inside the storage directory.
const dockerDir = "docker"

// seedsDir is for what is made of the owner's files for sandboxes, inside dockerDir.
const seedsDir = "seeds"

// sandboxes are the places besides this machine in which a configuration wants agents.
type sandboxes struct {
	cfg     config.Config
	log     *slog.Logger
	engines map[docker.EngineOptions]*docker.Engine
	rooms   []*room // as configured, in order of their names
	parts   parts
	policy  policy
}

// room is one sandbox: that of a project, or of all that is in none; or the part of it that a conversation has.
type room struct {
	name     string
	setting  config.SandboxSetting
	engine   *docker.Engine   // nil if it cannot be
	source   *docker.Engine   // of its image; nil for none
	launcher *docker.Launcher // nil if it cannot be
	why      error            // why not: an error of package docker
	seeds    []docker.Seed
}

// matters says whether anything runs, ran or is to run in a sandbox. Those of projects without one are there for tasks
// that ask for one.
func (r *room) matters() bool {
	return r.setting.Mode == config.SandboxDocker || r.launcher != nil && r.launcher.Made()
}

// inSandbox tells Claude that it is in a container: it refuses to bypass permissions as root elsewhere.
const inSandbox = "IS_SANDBOX=1"

// openSandboxes makes what the configuration asks for. No engine is asked for anything. What is wrong with one
// sandbox is its own affair: the turns in it are refused.
func openSandboxes(cfg config.Config, log *slog.Logger) (*sandboxes, error) {
	s := &sandboxes{cfg: cfg, log: log, engines: map[docker.EngineOptions]*docker.Engine{}, policy: newPolicy(cfg)}
	if !asksForSandbox(cfg) {
		return s, nil
	}
	for _, dir := range append(s.shared(), s.path(dockerDir)) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a place for the sandboxes: %w", err)
		}
	}
	for _, name := range append([]string{config.DefaultSandbox}, slices.Sorted(maps.Keys(cfg.Sandbox.Projects))...) {
		r := &room{name: name, setting: cfg.Sandbox.Named(name)}
		if r.why = s.open(r); r.why != nil {
			log.Warn("a sandbox cannot be had", "sandbox", name, "err", r.why)
		}
		s.rooms = append(s.rooms, r)
	}
	s.reopen()
	return s, nil
}

// asksForSandbox says whether anything is to run in a sandbox.
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

func (s *sandboxes) open(r *room) (err error) {
	set := r.setting
	r.engine, err = s.engine(docker.EngineOptions{
		Host: cmp.Or(set.Host, docker.DefaultHost), CA: set.CA, Cert: set.Cert, Key: set.Key, SSHConfig: set.SSHConfig,
	})
	if err == nil && set.ImageFrom != "" {
		r.source, err = s.engine(docker.EngineOptions{Host: set.ImageFrom, SSHConfig: set.SSHConfig})
	}
	if err != nil {
		return wrongSetting(r.name, err)
	}
	if r.seeds, err = seedsOf(set, s.cfg.Agents, s.path(filepath.Join(dockerDir, seedsDir))); err != nil {
		return wrongSetting(r.name, err)
	}
	return s.launch(r)
}

// launch makes the launcher of a sandbox.
func (s *sandboxes) launch(r *room) error {
	o, err := s.options(r)
	if err == nil {
		r.launcher, err = docker.Open(o)
	}
	if err != nil {
		return wrongSetting(r.name, err)
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

// options translate a setting.
func (s *sandboxes) options(r *room) (docker.Options, error) {
	set, a := r.setting, s.cfg.Agents
	mounts, err := mountsOf(set)
	if err != nil {
		return docker.Options{}, err
	}
	o := docker.Options{
		Engine: r.engine, Owner: s.owner(), Name: r.name, Dir: s.path(dockerDir), Supervisor: supervisorPath(set),
		Image: set.Image, Pull: set.Pull, Source: r.source, Projects: s.projects(r), Mounts: mounts, Shared: s.shared(), Seeds: r.seeds,
		User: set.User, CPUs: set.CPUs, Memory: int64(set.MemoryMB) << 20, PIDs: int64(set.PIDs), Network: docker.Network(set.Network),
		ReadOnlyRoot: set.ReadOnlyRoot, Env: append([]string{inSandbox}, set.Env...),
		MaxAge: a.StaleAfter, OrphanAfter: a.OrphanAfter, Grace: a.Grace, Logger: s.log,
	}
	if set.Image == "" {
		o.Build = &docker.Build{Dir: set.BuildDir, Network: docker.Network(set.BuildNetwork)}
	}
	if set.Home == config.HomeSession {
		o.HomeSeeds = r.seeds
	}
	return o, nil
}

// owner tells the containers of this ductor from those of others: it is made of where its storage is.
func (s *sandboxes) owner() string {
	sum := sha256.Sum256([]byte(s.cfg.Storage.Dir))
	return hex.EncodeToString(sum[:6])
}

// supervisorPath is where the program is that runs in every container.
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
		return "" // which is said when it is needed
	}
	return found
}

// projects are the directories that agents work in, as they were named and as they are: links lead nowhere in a
// container.
func (s *sandboxes) projects(r *room) []string {
	var named []string
	if p, ok := s.cfg.Sandbox.Projects[cli.Sandbox(r.name).Name()]; ok {
		named = []string{p.Dir}
	} else {
		named = slices.DeleteFunc(slices.Clone(s.cfg.Projects.Roots), func(root string) bool {
			_, err := os.Stat(root)
			return r.engine.Local() && errors.Is(err, fs.ErrNotExist) // nobody can work there
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

// site is a sandbox as the agents' service wants it.
func (h *house) site(r *room) cli.Site {
	site := cli.Site{Sandbox: cli.Sandbox(r.name)}
	g := ground{
		inside: true, readFile: seeded(r.seeds),
		prompts: h.boxes.path(promptsDir), gemini: h.boxes.path(geminiDir),
	}
	if r.launcher == nil {
		g.launcher = nowhere{r.why}
	} else {
		g.launcher = r.launcher
		if r.setting.Home == config.HomeSession {
			site.Homes = r.launcher
		}
	}
	site.Launcher, site.Providers = g.launcher, h.providers(g)
	return site
}

// sites are all sandboxes that are open.
func (h *house) sites() (all []cli.Site) {
	for _, r := range h.boxes.all() {
		all = append(all, h.site(r))
	}
	return all
}

// openSite opens the part of a sandbox that a conversation has; false where the configuration wants none.
func (h *house) openSite(in cli.Sandbox) (cli.Site, bool) {
	r := h.boxes.room(in)
	if r == nil {
		return cli.Site{}, false
	}
	return h.site(r), true
}

// close lets go of what runs in the sandboxes, which goes on.
func (s *sandboxes) close() error {
	var errs []error
	for _, r := range s.all() {
		if r.launcher != nil {
			errs = append(errs, r.launcher.Close())
		}
	}
	for _, e := range s.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}
