package app

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/internal/app/environment"
	"ductor/internal/backup"
	"ductor/internal/config"
	"ductor/internal/keys"
)

// The names of files in a backup that are not of the storage directory.
const (
	BackedConfig = "config.toml"
	backedToken  = "token"
)

// Backed is what a backup holds of a configuration's state: the database, and the files that its rows name. What belongs
// to the agents and containers of this machine, and what is made anew at need, is not in it.
func Backed(cfg config.Config) backup.Contents {
	return backup.Contents{
		State: cfg.Storage.Dir, Database: DatabaseFile, Dirs: []string{environment.UploadsDir, spoolDir},
	}
}

// AddSecrets adds to a backup what holds secrets: the configuration, the token's file, kept keys and the homes of
// sessions, in which agents keep their log-ins.
func AddSecrets(c *backup.Contents, cfg config.Config) {
	c.Dirs = append(c.Dirs, keys.Folder, environment.HomesDir)
	c.Files = append(c.Files, backup.File{Name: BackedConfig, Path: cfg.File})
	if cfg.Telegram.TokenFile != "" {
		c.Files = append(c.Files, backup.File{Name: backedToken, Path: cfg.Telegram.TokenFile})
	}
}

// ownFiles are the files and directories that decide what ductor does: configuration, state, units and program. Whoever
// writes one of them owns the bot. All are absolute, as they are named and with links resolved.
func ownFiles(cfg config.Config) []string {
	all := []string{cfg.Storage.Dir, config.StateDir(), cfg.Telegram.TokenFile, cfg.Log.File, cfg.File}
	if dir := filepath.Dir(cfg.File); cfg.File != "" && !holdsRoot(cfg, dir) {
		all = append(all, dir) // what else lies there, such as the service's environment
	}
	all = append(all, userFiles()...)
	all = append(all, programFiles()...)
	all = slices.DeleteFunc(all, func(path string) bool { return !filepath.IsAbs(path) })
	for _, path := range slices.Clone(all) {
		all = append(all, cli.RealPath(path))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// holdsRoot says whether agents work below dir, so that not all of it can be ductor's own.
func holdsRoot(cfg config.Config, dir string) bool {
	return slices.ContainsFunc(cfg.Projects.Roots, func(root string) bool { return cli.Lies(root, dir) })
}

// userFiles are where this user's configuration, units and the environment of units are looked for.
func userFiles() (all []string) {
	if dir, err := os.UserConfigDir(); err == nil {
		all = append(all, filepath.Join(dir, "ductor"), filepath.Join(dir, "systemd"), filepath.Join(dir, "environment.d"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		all = append(all, filepath.Join(home, ".local/share/systemd"), filepath.Join(home, ".config/systemd"))
	}
	if os.Geteuid() == 0 {
		all = append(all, "/etc/systemd", "/etc/environment.d")
	}
	return all
}

// programFiles are the running program and the name it was started by.
func programFiles() (all []string) {
	if path, err := os.Executable(); err == nil {
		all = append(all, path)
	}
	if path, err := exec.LookPath(os.Args[0]); err == nil {
		if path, err = filepath.Abs(path); err == nil {
			all = append(all, path)
		}
	}
	return all
}

// DoubtsOfRoots warns of roots in which agents work beside ductor's own files: an agent that may write them owns the bot.
func DoubtsOfRoots(cfg config.Config) (all []string) {
	for _, root := range cfg.Projects.Roots {
		real := cli.RealPath(root)
		var inside []string
		for _, path := range ownFiles(cfg) {
			if _, err := os.Lstat(path); err == nil && (cli.Lies(path, real) || cli.Lies(real, path)) {
				inside = append(inside, path)
			}
		}
		if len(inside) > 0 {
			all = append(all, fmt.Sprintf("projects.roots: %s holds ductor's own files (%s); an agent that may write them owns the bot, so name narrower directories",
				root, strings.Join(shortest(inside), ", ")))
		}
	}
	return all
}

// shortest leaves out of sorted paths those below another of them.
func shortest(paths []string) (out []string) {
	for _, path := range paths {
		if !slices.ContainsFunc(out, func(dir string) bool { return cli.Lies(path, dir) }) {
			out = append(out, path)
		}
	}
	return out
}

// MakeDefaultRoot makes the directory that agents work in where the owner named none.
func MakeDefaultRoot(cfg config.Config) error {
	if !IsDefaultRoot(cfg) {
		return nil
	}
	if err := os.MkdirAll(cfg.Projects.Roots[0], 0o700); err != nil {
		return OfKind(ErrConfig, fmt.Errorf("make projects.roots: %w; name another directory there", err))
	}
	return nil
}

// IsDefaultRoot says whether the owner named no directory to work in.
func IsDefaultRoot(cfg config.Config) bool {
	return slices.Equal(cfg.Projects.Roots, config.Default().Projects.Roots)
}
