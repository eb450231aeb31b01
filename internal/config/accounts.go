package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/cli/acp"
)

// stateHome describes the directory in which an agent stores its state. The directory is the value of an environment
// variable, or a folder of the user's home directory if the variable is not set.
type stateHome struct{ variable, folder string }

func stateHomes() map[string]stateHome {
	return map[string]stateHome{
		"claude": {"CLAUDE_CONFIG_DIR", ".claude"}, "codex": {"CODEX_HOME", ".codex"},
		"gemini": {"GEMINI_CLI_HOME", ""}, "copilot": {"COPILOT_HOME", ".copilot"},
	}
}

// Accounts returns the additional accounts of an agent, by name.
func (a Agents) Accounts(agent string) map[string]cli.AccountSettings {
	if s, ok := a.ACP[agent]; ok {
		return s.Accounts
	}
	return a.Own()[cli.Agent(agent)].Accounts
}

// AccountHomes returns the home directories of an agent's additional accounts, in the order of their names.
func (a Agents) AccountHomes(agent string) (homes []string) {
	accounts := a.Accounts(agent)
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		homes = append(homes, accounts[name].Home)
	}
	return homes
}

// Uses reports whether an account is configured and its agent is enabled. The account has the form "agent" or
// "agent@account", as returned by cli.Account.Of.
func (a Agents) Uses(account string) bool {
	agent, name, named := strings.Cut(account, "@")
	_, there := a.Accounts(agent)[name]
	return a.Enabled(agent) && (there || !named)
}

// AccountVariable returns the environment variable that selects the home of an agent's account. It returns "" if ductor
// does not know this variable.
func (a Agents) AccountVariable(agent string) string { return a.stateHome(agent).variable }

// AccountTable returns the name of a table that configures a second account of the agent, as an example for users. In the
// example, the account is called "work". AccountTable returns "" if the agent cannot have additional accounts.
func (a Agents) AccountTable(agent string) string {
	if a.AccountVariable(agent) == "" {
		return ""
	}
	return a.Table(agent) + ".accounts.work"
}

func (a Agents) stateHome(agent string) stateHome {
	if s, ok := a.ACP[agent]; ok {
		e, _ := acp.EntryOf(s.Path)
		return stateHome{e.Home, strings.TrimPrefix(strings.Join(e.State, ""), "~/")}
	}
	return stateHomes()[agent]
}

// accountName matches valid names of accounts. The names are short, because buttons contain them.
var accountName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`) })

// checkAccounts checks the accounts of all agents, and appends warnings to c.Warnings. The accounts' homes must already
// be absolute paths.
func (c *Config) checkAccounts(p *problems, env Environment) {
	for _, agent := range c.Agents.Names() {
		state, accounts := c.Agents.stateHome(agent), c.Agents.Accounts(agent)
		table, homes := c.Agents.Table(agent)+".accounts", map[string]string{}
		if len(accounts) > 0 && state.variable == "" {
			p.add(table, "no variable is known that leads %s to another home, so it can have only one account", agent)
			continue
		}
		own := cli.RealPath(cmp.Or(env.Getenv(state.variable), filepath.Join(env.Getenv("HOME"), state.folder)))
		homes[own] = "the default account"
		// near returns an account whose home is the directory real, lies in it or contains it. It returns "" if there
		// is none.
		near := func(real string) string {
			for _, other := range slices.Sorted(maps.Keys(homes)) {
				// The home of Gemini's default account is the user's whole home directory. Other accounts may have
				// homes in it.
				inUserHome := other == own && state.folder == ""
				if cli.Lies(other, real) || cli.Lies(real, other) && !inUserHome {
					return homes[other]
				}
			}
			return ""
		}
		for _, name := range slices.Sorted(maps.Keys(accounts)) {
			key, home := below(table, name), accounts[name].Home
			real := cli.RealPath(home)
			neighbor := near(real)
			doubt, err := checkHome(home)
			switch {
			case !accountName().MatchString(name) || name == "default":
				p.add(key, "an account's name is at most 20 small letters, digits and dashes, such as work; "+
					"the account without a name is called default")
			case home == "":
				p.add(key+".home", "an account needs a home: a directory for the agent's log-in and sessions")
			case homes[real] != "":
				p.add(key+".home", "%s has this home", homes[real])
			case neighbor != "":
				p.add(key+".home", "it lies in the home of %s or contains it; choose a directory beside it", neighbor)
			case c.holdsProject(home) || c.holdsProject(real):
				p.add(key+".home", "a project lies in it, and agents work there; choose a directory without projects")
			case c.inProject(home) || c.inProject(real):
				p.add(key+".home", "agents work there, and what they write could change the log-in; "+
					"choose a directory outside of all projects")
			case err != nil:
				p.add(key+".home", "%v", err)
			case doubt != "":
				c.Warnings = append(c.Warnings, key+".home: "+doubt)
			}
			homes[real] = "the account " + name
		}
	}
}

// inProject reports whether agents may work in dir.
func (c *Config) inProject(dir string) bool {
	return slices.ContainsFunc(c.projectDirs(), func(root string) bool { return cli.Lies(dir, root) })
}

// holdsProject reports whether agents may work somewhere below dir.
func (c *Config) holdsProject(dir string) bool {
	return slices.ContainsFunc(c.projectDirs(), func(root string) bool { return cli.Lies(root, dir) })
}

// projectDirs returns the directories in which agents may work: each as configured, and with symbolic links resolved.
func (c *Config) projectDirs() (dirs []string) {
	all := slices.Concat(c.Projects.Roots, c.Projects.AddDirs, []string{c.Projects.DefaultDir})
	for _, named := range c.Projects.Named {
		all = append(all, named.Dir)
	}
	for _, named := range c.Sandbox.Projects {
		all = append(all, named.Dir)
	}
	for _, root := range all {
		if root != "" {
			dirs = append(dirs, root, cli.RealPath(root))
		}
	}
	return dirs
}

// checkHome checks the home directory of an account. The directory may be missing. The returned text is a warning, or
// "".
func checkHome(dir string) (warning string, err error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", nil // a missing directory is valid; ductor creates it
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a directory", dir)
	case info.Mode().Perm()&0o022 != 0:
		return "", fmt.Errorf("others may write to %s; run: chmod 700 %s", dir, shellWord(dir))
	case info.Mode().Perm()&fs.FileMode(0o055) != 0:
		return fmt.Sprintf("others may read %s; run: chmod 700 %s", dir, shellWord(dir)), nil
	}
	return "", nil
}
