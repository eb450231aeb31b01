package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ductor/docker"
	"ductor/internal/config"
)

// seedsOf are the files of this machine that are copied into the home of a sandbox.
func seedsOf(set config.SandboxSetting, a config.Agents) ([]docker.Seed, error) {
	var seeds []docker.Seed
	if set.Logins == config.LoginsCopy {
		home := os.Getenv("HOME")
		for _, name := range loginFiles(a) {
			seeds = append(seeds, docker.Seed{From: filepath.Join(home, name), To: name, Optional: true})
		}
	}
	own, err := set.ParseSeeds()
	for _, s := range own {
		seeds = append(seeds, docker.Seed{From: s.From, To: s.To})
	}
	return seeds, err
}

// seeded reads files of the home as they are in a sandbox: what was copied there, and nothing else.
func seeded(seeds []docker.Seed) func(string) ([]byte, error) {
	home := os.Getenv("HOME")
	return func(path string) ([]byte, error) {
		below, err := filepath.Rel(home, path)
		if err != nil {
			return nil, fs.ErrNotExist
		}
		for _, s := range seeds {
			rest, err := filepath.Rel(s.To, below)
			if err == nil && rest != ".." && !strings.HasPrefix(rest, "../") {
				return os.ReadFile(filepath.Join(s.From, rest))
			}
		}
		return nil, fs.ErrNotExist
	}
}

// loginFiles are where agents keep their log-ins, below the home.
func loginFiles(a config.Agents) []string {
	var files []string
	if a.Claude.Enabled {
		files = append(files, ".claude/.credentials.json")
	}
	if a.Codex.Enabled {
		files = append(files, ".codex/auth.json")
	}
	if a.Gemini.Enabled {
		files = append(files, ".gemini/oauth_creds.json", ".gemini/google_accounts.json")
	}
	if a.Copilot.Enabled {
		files = append(files, ".copilot/config.json")
	}
	return files
}
