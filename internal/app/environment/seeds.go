package environment

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ductor/cli"
	"ductor/cli/claude"
	"ductor/cli/codex"
	"ductor/cli/copilot"
	"ductor/cli/gemini"
	"ductor/cli/host"
	"ductor/docker"
	"ductor/internal/config"
)

// OwnerHome returns the home directory of the user who runs ductor, or "" if it is unknown.
func OwnerHome() string {
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return home
	}
	return ""
}

// agentSeeds are the files that ductor copies into a new home directory for an agent. An empty agent means all agents.
type agentSeeds struct {
	agent cli.Agent
	seeds []cli.HomeSeed
}

// homeSeeds returns the files that a new home directory needs: copies of the log-ins of the user who runs ductor, and
// settings that prevent an agent from asking questions at its start.
func homeSeeds(agents config.Agents) []agentSeeds {
	home, env := OwnerHome(), os.Environ()
	if home == "" {
		return nil
	}
	all := []agentSeeds{{seeds: host.GitSeeds(home)}}
	for _, of := range []struct {
		agent   cli.Agent
		enabled bool
		seeds   func(owner string, env []string) []cli.HomeSeed
	}{
		{"claude", agents.Claude.Enabled, claude.HomeSeeds}, {codex.Agent, agents.Codex.Enabled, codex.HomeSeeds},
		{gemini.Agent, agents.Gemini.Enabled, gemini.HomeSeeds},
		{copilot.Agent, agents.Copilot.Enabled, copilot.HomeSeeds},
	} {
		if of.enabled {
			all = append(all, agentSeeds{of.agent, of.seeds(home, env)})
		}
	}
	return all
}

// openHomes opens the homes of sessions on this machine. It returns nil if all sessions use the home of the user who
// runs ductor.
func openHomes(cfg config.Config) (*host.Homes, error) {
	if cfg.Sandbox.Home != docker.HomeSession {
		return nil, nil
	}
	var seeds []cli.HomeSeed
	for _, of := range homeSeeds(cfg.Agents) {
		seeds = append(seeds, of.seeds...)
	}
	return host.OpenHomes(host.HomesOptions{Dir: filepath.Join(cfg.Storage.Dir, HomesDir), Seeds: seeds})
}

// seedsOf returns the files of this machine that ductor copies into the home of a sandbox. If the copy must differ from
// the original, seedsOf writes the copy to dir.
func seedsOf(set docker.Settings, agents config.Agents, dir string) ([]docker.Seed, error) {
	var seeds []docker.Seed
	if set.Logins == docker.LoginsCopy {
		for _, of := range homeSeeds(agents) {
			copied, err := host.CopiedSeeds(dir, of.seeds)
			if err != nil {
				return nil, err
			}
			for _, s := range copied {
				seeds = append(seeds, docker.Seed{From: s.From, To: s.To, Optional: true, Agent: of.agent})
			}
		}
	}
	own, err := set.ParseSeeds()
	return append(seeds, own...), err
}

// ReadFile reads the sandbox's copy of a file in OwnerHome. The error matches fs.ErrNotExist if the file is not copied.
func (b *Sandbox) ReadFile(path string) ([]byte, error) {
	below, err := filepath.Rel(OwnerHome(), path)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	for _, s := range b.Seeds {
		rest, err := filepath.Rel(s.To, below)
		if err == nil && rest != ".." && !strings.HasPrefix(rest, "../") {
			return os.ReadFile(filepath.Join(s.From, rest))
		}
	}
	return nil, fs.ErrNotExist
}
