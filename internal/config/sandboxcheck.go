package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/docker"
	"ductor/orchestrator"
)

// checkSandbox checks the projects of the sandbox. Type docker.Settings checks its own fields.
func (c *Config) checkSandbox(p *problems) {
	dirs := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Sandbox.Projects)) {
		project, key := c.Sandbox.Projects[name], below("sandbox.projects", name)
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

// checkProject checks a project's own settings. The table [sandbox] does not have these settings.
func (c *Config) checkProject(p *problems, key string, project SandboxProject) {
	switch dir := project.Dir; {
	case dir == "":
		p.add(key+".dir", "a project needs its directory")
	case !c.inRoots(dir):
		p.add(key+".dir", "%s is outside of projects.roots", dir)
	case project.Exposes(dir):
		p.add(key+".dir", "the socket of Docker is in %s, and whoever may use it owns the machine; "+
			"name another directory", dir)
	}
	if project.Mode == orchestrator.SandboxOff && project.Home != c.Sandbox.Home {
		p.add(key+".home", "without a sandbox the homes are those of [sandbox], %q", c.Sandbox.Home)
	}
}

// secretName matches the names of variables that probably contain secrets.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$`)
})

// hasSecret reports whether an entry NAME=value probably contains a secret. The name must suggest a secret, and the
// value must have at least the given number of bytes.
func hasSecret(entry string, bytes int) bool {
	name, value, _ := strings.Cut(entry, "=")
	return len(value) >= bytes && secretName().MatchString(name)
}

// sandboxDoubts returns warnings about sandbox settings that are probably unintended.
func (c *Config) sandboxDoubts() []string {
	var all []string
	warn := func(key, format string, args ...any) {
		if text := key + ": " + fmt.Sprintf(format, args...); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	settings := map[string]docker.Settings{"sandbox": c.Sandbox.Settings}
	for name, p := range c.Sandbox.Projects {
		settings[below("sandbox.projects", name)] = p.Settings
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		s, general := settings[key], c.Sandbox
		own := key != "sandbox"
		if strings.HasPrefix(s.Host, "tcp://") && s.CA == "" && s.Cert == "" && !(own && s.Host == general.Host) {
			warn(key+".host", "tcp without ca, cert and key is in the clear, and whoever reaches it owns that machine")
		}
		if dir := c.exposedState(key); s.Mode == orchestrator.SandboxDocker && dir != "" {
			warn(key, "%s is in the sandbox as a whole, and ductor's own state with it, which is in %s; "+
				"let agents work in narrower directories", dir, c.Storage.Dir)
		}
		if s.CPUs > 0 && s.CPUs < 0.1 {
			warn(key+".cpus", "with %v of a processor an agent takes minutes to start", s.CPUs)
		}
		for _, entry := range s.Env {
			if inherited := own && slices.Contains(general.Env, entry); !inherited && hasSecret(entry, 1) {
				name, _, _ := strings.Cut(entry, "=")
				warn(key+".env", "%s looks like a secret, and this file like no place for one; "+
					"put it into ductor's environment and name it in agents.….env", name)
			}
		}
	}
	return all
}

// exposedState returns a directory that gives agents in a sandbox access to ductor's own state, or "". The sandbox is
// given by the name of its table, such as "sandbox.projects.web".
func (c *Config) exposedState(table string) string {
	for name, p := range c.Sandbox.Projects {
		if below("sandbox.projects", name) == table {
			if cli.Lies(c.Storage.Dir, p.Dir) {
				return p.Dir
			}
			return ""
		}
	}
	for _, root := range c.Projects.Roots {
		if cli.Lies(c.Storage.Dir, root) {
			return root
		}
	}
	return ""
}

// secrets returns the values of variables in sandboxes that probably are secrets.
func (s Sandbox) secrets() (all []string) {
	settings := []docker.Settings{s.Settings}
	for _, name := range slices.Sorted(maps.Keys(s.Projects)) {
		settings = append(settings, s.Projects[name].Settings)
	}
	for _, setting := range settings {
		for _, entry := range setting.Env {
			if _, value, _ := strings.Cut(entry, "="); hasSecret(entry, 8) && !slices.Contains(all, value) {
				all = append(all, value)
			}
		}
	}
	return all
}
