package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// checkSandbox checks the projects of the sandbox. SandboxSetting checks its own settings.
func (c *Config) checkSandbox(p *problems) {
	dirs := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Sandbox.Projects)) {
		project, key := c.Sandbox.Projects[name], projectKey(name)
		checkTaskName(p, key, name)
		if name == DefaultSandbox {
			p.add(key, "%q is the name of all that is in no project; choose another name, or set it in [sandbox]", name)
		}
		c.checkProject(p, key, project)
		if other, twice := dirs[project.Dir]; twice && project.Dir != "" {
			p.add(key+".dir", "%s is the directory of the project %s already; give each its own", project.Dir, other)
		}
		dirs[project.Dir] = name
	}
}

// checkProject checks the settings that only projects have.
func (c *Config) checkProject(p *problems, key string, project SandboxProject) {
	switch dir := project.Dir; {
	case dir == "":
		p.add(key+".dir", "a project needs its directory")
	case !c.inRoots(dir):
		p.add(key+".dir", "%s is outside of projects.roots", dir)
	case slices.ContainsFunc(project.engineSockets(), func(socket string) bool { return inside(dir, socket) }):
		p.add(key+".dir", "the socket of Docker is in %s, and whoever may use it owns the machine; name another directory", dir)
	}
	if project.Mode == SandboxOff && project.Home != c.Sandbox.Home {
		p.add(key+".home", "without a sandbox the homes are those of [sandbox], %q", c.Sandbox.Home)
	}
}

// Check implements checker.
func (s SandboxSetting) Check(problem func(key, format string, args ...any)) {
	s.checkEngine(problem)
	s.checkImage(problem)
	s.checkLimits(problem)
	s.checkFiles(problem)
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, entry := range s.Env {
		variable, _, ok := strings.Cut(entry, "=")
		switch {
		case !ok || !name.MatchString(variable):
			problem("env", `%q should be "NAME=value"; what ductor has in its own environment is given by agents.….env`, hideValue(entry))
		case variable == TokenVariable:
			problem("env", "%s would hand the bot's token to the agents", variable)
		case variable == "HOME" || variable == "PATH":
			problem("env", "%s is the sandbox's own", variable)
		}
	}
}

func (s SandboxSetting) checkEngine(problem report) {
	if (s.Cert == "") != (s.Key == "") {
		problem("cert", "cert and key belong together; give both or none")
	}
	checkHost(problem, "host", s.Host, "unix:///path, tcp://host:port or ssh://user@host", "unix", "tcp", "ssh")
	checkHost(problem, "image_from", s.ImageFrom, "unix:///path or ssh://user@host", "unix", "ssh")
}

// checkHost holds what an engine's address may be; empty is one.
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

func (s SandboxSetting) checkImage(problem report) {
	if s.Image != "" && s.BuildDir != "" {
		problem("image", "build_dir is set as well; keep one of the two")
	}
	if strings.ContainsFunc(s.Image, func(r rune) bool { return r <= ' ' }) || strings.HasPrefix(s.Image, "-") {
		problem("image", "%q is not the name of an image, such as ghcr.io/you/agents:1", s.Image)
	}
	for key, network := range map[string]string{"network": s.Network, "build_network": s.BuildNetwork} {
		switch {
		case network == "" && key == "network":
			problem(key, `is empty; it may be "bridge", "none" or the name of a network of the engine's`)
		case network == "host" || strings.HasPrefix(network, "container:"):
			problem(key, `%q would put agents in reach of what listens on this machine alone; it may be "bridge", "none" or the name of a network of the engine's`, network)
		}
	}
}

func (s SandboxSetting) checkLimits(problem report) {
	if !(s.CPUs == NoLimit || s.CPUs >= 0 && s.CPUs <= 1024) { // written so that a number that is none fails too
		problem("cpus", "%v is out of bounds; it may be 0 to 1024, or -1 for all", s.CPUs)
	}
	if s.MemoryMB != 0 && s.MemoryMB != NoLimit && (s.MemoryMB < 64 || s.MemoryMB > 1<<24) {
		problem("memory_mb", "%d is out of bounds; it may be 0 for half of the machine's, 64 to %d, or -1 for no limit", s.MemoryMB, 1<<24)
	}
	if s.PIDs != 0 && s.PIDs != NoLimit && (s.PIDs < 16 || s.PIDs > 1<<22) {
		problem("pids", "%d is out of bounds; it may be 0 for the default, 16 to %d, or -1 for no limit", s.PIDs, 1<<22)
	}
	if s.User != "" {
		if err := parseUser(s.User); err != nil {
			problem("user", "%v", err)
		}
	}
}

func (s SandboxSetting) checkFiles(problem report) {
	targets := map[string]bool{}
	for i, text := range s.Mounts {
		key := fmt.Sprintf("mounts[%d]", i)
		m, err := parseMount(text)
		switch {
		case err != nil:
			problem(key, "%v", err)
		case slices.ContainsFunc(s.engineSockets(), func(socket string) bool { return inside(m.Source, socket) }):
			problem(key, "with %s the socket of Docker would be in the sandbox, and whoever may use it owns the machine; leave it out", m.Source)
		case takenTarget(m.Target):
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
