package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
)

func (c *Config) checkSandbox(p *problems) {
	general := c.Sandbox.SandboxSetting.check()
	*p = append(*p, general.below("sandbox")...)
	dirs := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Sandbox.Projects)) {
		project, key := c.Sandbox.Projects[name], projectKey(name)
		checkTaskName(p, key, name)
		if name == DefaultSandbox {
			p.add(key, "%q is the name of all that is in no project; choose another name, or set it in [sandbox]", name)
		}
		own := project.SandboxSetting.check()
		c.checkProject(&own, project)
		if other, twice := dirs[project.Dir]; twice && project.Dir != "" {
			own.add("dir", "%s is the directory of the project %s already; give each its own", project.Dir, other)
		}
		dirs[project.Dir] = name
		*p = append(*p, own.without(general).below(key)...)
	}
}

// checkProject holds what is a project's alone.
func (c *Config) checkProject(p *problems, project SandboxProject) {
	switch dir := project.Dir; {
	case dir == "":
		p.add("dir", "a project needs its directory")
	case !filepath.IsAbs(dir):
		p.add("dir", "%q is not an absolute path", dir)
	case !slices.ContainsFunc(c.Projects.Roots, func(root string) bool { return inside(root, dir) }):
		p.add("dir", "%s is outside of projects.roots", dir)
	case slices.ContainsFunc(project.engineSockets(), func(socket string) bool { return inside(dir, socket) }):
		p.add("dir", "the socket of Docker is in %s, and whoever may use it owns the machine; name another directory", dir)
	}
	if project.Mode == SandboxOff && project.Home != c.Sandbox.Home {
		p.add("home", "without a sandbox the homes are those of [sandbox], %q", c.Sandbox.Home)
	}
}

// check says what is wrong with a setting, whatever table it is of.
func (s SandboxSetting) check() (p problems) {
	p.hold("", reflect.ValueOf(s))
	s.checkEngine(&p)
	s.checkImage(&p)
	s.checkLimits(&p)
	s.checkFiles(&p)
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, entry := range s.Env {
		variable, _, ok := strings.Cut(entry, "=")
		switch {
		case !ok || !name.MatchString(variable):
			p.add("env", `%q should be "NAME=value"; what ductor has in its own environment is given by agents.….env`, hideValue(entry))
		case variable == TokenVariable:
			p.add("env", "%s would hand the bot's token to the agents", variable)
		case variable == "HOME" || variable == "PATH":
			p.add("env", "%s is the sandbox's own", variable)
		}
	}
	return p
}

func (s SandboxSetting) checkEngine(p *problems) {
	for key, path := range map[string]string{"ca": s.CA, "cert": s.Cert, "key": s.Key, "ssh_config": s.SSHConfig, "runner": s.Runner, "build_dir": s.BuildDir} {
		if path != "" && !filepath.IsAbs(path) {
			p.add(key, "%q is not an absolute path", path)
		}
	}
	if (s.Cert == "") != (s.Key == "") {
		p.add("cert", "cert and key belong together; give both or none")
	}
	checkHost(p, "host", s.Host, "unix:///path, tcp://host:port or ssh://user@host", "unix", "tcp", "ssh")
	checkHost(p, "image_from", s.ImageFrom, "unix:///path or ssh://user@host", "unix", "ssh")
}

// checkHost holds what an engine's address may be; empty is one.
func checkHost(p *problems, key, host, forms string, schemes ...string) {
	if host == "" {
		return
	}
	u, err := url.Parse(host)
	switch {
	case err != nil || !slices.Contains(schemes, u.Scheme):
		p.add(key, "should be %s", forms)
	case u.Scheme == "unix" && filepath.IsAbs(u.Path) && u.Host == "":
	case u.Scheme == "tcp" && u.Hostname() != "" && u.Port() != "" && u.Path == "":
	case u.Scheme == "ssh" && u.Hostname() != "" && !strings.HasPrefix(u.Hostname(), "-"):
		if _, has := u.User.Password(); has {
			p.add(key, "holds a password; use a key")
		}
	default:
		p.add(key, "should be %s", forms)
	}
}

func (s SandboxSetting) checkImage(p *problems) {
	if s.Image != "" && s.BuildDir != "" {
		p.add("image", "build_dir is set as well; keep one of the two")
	}
	if strings.ContainsFunc(s.Image, func(r rune) bool { return r <= ' ' }) || strings.HasPrefix(s.Image, "-") {
		p.add("image", "%q is not the name of an image, such as ghcr.io/you/agents:1", s.Image)
	}
	for key, network := range map[string]string{"network": s.Network, "build_network": s.BuildNetwork} {
		switch {
		case network == "" && key == "network":
			p.add(key, `is empty; it may be "bridge", "none" or the name of a network of the engine's`)
		case network == "host" || strings.HasPrefix(network, "container:"):
			p.add(key, `%q would put agents in reach of what listens on this machine alone; it may be "bridge", "none" or the name of a network of the engine's`, network)
		}
	}
}

func (s SandboxSetting) checkLimits(p *problems) {
	if !(s.CPUs == NoLimit || s.CPUs >= 0 && s.CPUs <= 1024) { // written so that a number that is none fails too
		p.add("cpus", "%v is out of bounds; it may be 0 to 1024, or -1 for all", s.CPUs)
	}
	if s.MemoryMB != 0 && s.MemoryMB != NoLimit && (s.MemoryMB < 64 || s.MemoryMB > 1<<24) {
		p.add("memory_mb", "%d is out of bounds; it may be 0 for half of the machine's, 64 to %d, or -1 for no limit", s.MemoryMB, 1<<24)
	}
	if s.PIDs != 0 && s.PIDs != NoLimit && (s.PIDs < 16 || s.PIDs > 1<<22) {
		p.add("pids", "%d is out of bounds; it may be 0 for the default, 16 to %d, or -1 for no limit", s.PIDs, 1<<22)
	}
	if s.Idle != 0 {
		p.within("idle", s.Idle, "1m", "87600h")
	}
	if s.User != "" {
		if err := parseUser(s.User); err != nil {
			p.add("user", "%v", err)
		}
	}
}

func (s SandboxSetting) checkFiles(p *problems) {
	targets := map[string]bool{}
	for _, text := range s.Mounts {
		m, err := parseMount(text)
		switch {
		case err != nil:
			p.add("mounts", "%v", err)
		case slices.ContainsFunc(s.engineSockets(), func(socket string) bool { return inside(m.Source, socket) }):
			p.add("mounts", "with %s the socket of Docker would be in the sandbox, and whoever may use it owns the machine; leave it out", m.Source)
		case takenTarget(m.Target):
			p.add("mounts", "%s is the sandbox's own; choose another place", m.Target)
		case targets[m.Target]:
			p.add("mounts", "two of them are at %s", m.Target)
		}
		targets[m.Target] = true
	}
	for _, text := range s.Seeds {
		if _, err := parseSeed(text); err != nil {
			p.add("seeds", "%v", err)
		}
	}
}

// takenTarget says whether a mount would hide what a container cannot do without.
func takenTarget(target string) bool {
	for _, own := range []string{"/proc", "/sys", "/dev", "/opt/ductor", "/ductor/runs"} {
		if inside(own, target) {
			return true
		}
	}
	return slices.Contains([]string{"/", "/ductor", "/ductor/home", "/var/run/docker.sock", "/run/docker.sock"}, target)
}

// secretName are variables that hold what must not be shown, by how they are called.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$`)
})

// sandboxDoubts warn of what is allowed but probably not meant.
func (c *Config) sandboxDoubts() []string {
	var all []string
	say := func(key, format string, args ...any) {
		if text := key + ": " + fmt.Sprintf(format, args...); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	settings := map[string]SandboxSetting{"sandbox": c.Sandbox.SandboxSetting}
	for name, p := range c.Sandbox.Projects {
		settings[projectKey(name)] = p.SandboxSetting
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		s, general := settings[key], c.Sandbox
		own := key != "sandbox"
		if strings.HasPrefix(s.Host, "tcp://") && s.CA == "" && s.Cert == "" && !(own && s.Host == general.Host) {
			say(key+".host", "tcp without ca, cert and key is in the clear, and whoever reaches it owns that machine")
		}
		if dir := c.withState(key); s.Mode == SandboxDocker && dir != "" {
			say(key, "%s is in the sandbox as a whole, and ductor's own state with it, which is in %s; let agents work in narrower directories", dir, c.Storage.Dir)
		}
		if s.CPUs > 0 && s.CPUs < 0.1 {
			say(key+".cpus", "with %v of a processor an agent takes minutes to start", s.CPUs)
		}
		for _, entry := range s.Env {
			if name, value, _ := strings.Cut(entry, "="); value != "" && secretName().MatchString(name) && !(own && slices.Contains(general.Env, entry)) {
				say(key+".env", "%s looks like a secret, and this file like no place for one; put it into ductor's environment and name it in agents.….env", name)
			}
		}
	}
	return all
}

// withState is a directory that the sandbox of a table has in it and that has ductor's state in it; empty if none.
func (c *Config) withState(key string) string {
	for name, p := range c.Sandbox.Projects {
		if projectKey(name) == key {
			if inside(p.Dir, c.Storage.Dir) {
				return p.Dir
			}
			return ""
		}
	}
	for _, root := range c.Projects.Roots {
		if inside(root, c.Storage.Dir) {
			return root
		}
	}
	return ""
}

// secrets are the values of variables that look like some.
func (s Sandbox) secrets() (all []string) {
	settings := []SandboxSetting{s.SandboxSetting}
	for _, name := range slices.Sorted(maps.Keys(s.Projects)) {
		settings = append(settings, s.Projects[name].SandboxSetting)
	}
	for _, setting := range settings {
		for _, entry := range setting.Env {
			if name, value, _ := strings.Cut(entry, "="); len(value) >= 8 && secretName().MatchString(name) && !slices.Contains(all, value) {
				all = append(all, value)
			}
		}
	}
	return all
}
