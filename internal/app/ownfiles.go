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

// Names in a backup for files that are not in the storage directory.
const (
	BackupConfigName = "config.toml"
	backupTokenName  = "token"
)

// BackupContents returns the files that belong in a backup: the database, and the files to which it refers. Files of
// agents and containers are not in a backup. Either they are useful only on this machine, or ductor can create them
// again.
func BackupContents(cfg config.Config) backup.Contents {
	return backup.Contents{
		State: cfg.Storage.Dir, Database: DatabaseFile, Dirs: []string{environment.UploadsDir, spoolDir},
	}
}

// AddSecrets adds the files with secrets: the configuration, the token file, stored keys, and the home directories of
// sessions, which contain the agents' log-ins.
func AddSecrets(c *backup.Contents, cfg config.Config) {
	c.Dirs = append(c.Dirs, keys.Folder, environment.HomesDir)
	c.Files = append(c.Files, backup.File{Name: BackupConfigName, Path: cfg.File})
	if cfg.Telegram.TokenFile != "" {
		c.Files = append(c.Files, backup.File{Name: backupTokenName, Path: cfg.Telegram.TokenFile})
	}
}

// ownFiles returns the files and directories that control ductor: configuration, state, systemd units and program. A
// process that can write to one of them controls the bot. The result contains each path as written, and with symbolic
// links resolved. All paths are absolute.
func ownFiles(cfg config.Config) []string {
	all := []string{cfg.Storage.Dir, config.StateDir(), cfg.Telegram.TokenFile, cfg.Log.File, cfg.File}
	if dir := filepath.Dir(cfg.File); cfg.File != "" && !holdsRoot(cfg, dir) {
		all = append(all, dir) // dir may contain the file with the environment of ductor's systemd service
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

// holdsRoot reports whether agents work below dir. If so, ductor can protect only single files in dir.
func holdsRoot(cfg config.Config, dir string) bool {
	return slices.ContainsFunc(cfg.Projects.Roots, func(root string) bool { return cli.Lies(root, dir) })
}

// userFiles returns the directories from which ductor and systemd read this user's configuration, units and
// environment.
func userFiles() (all []string) {
	if dir, err := os.UserConfigDir(); err == nil {
		all = append(all, filepath.Join(dir, "ductor"), filepath.Join(dir, "systemd"),
			filepath.Join(dir, "environment.d"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		all = append(all, filepath.Join(home, ".local/share/systemd"), filepath.Join(home, ".config/systemd"))
	}
	if os.Geteuid() == 0 {
		all = append(all, "/etc/systemd", "/etc/environment.d")
	}
	return all
}

// programFiles returns the path of the running program, and the path by which it was started.
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

// DoubtsOfRoots returns warnings about working directories of agents that contain ductor's own files. An agent that can
// write to these files controls the bot.
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
			all = append(all, fmt.Sprintf("projects.roots: %s holds ductor's own files (%s); an agent that may write "+
				"them owns the bot, so name narrower directories",
				root, strings.Join(shortest(inside), ", ")))
		}
	}
	return all
}

// shortest removes all paths that are below another path of the list. paths must be sorted.
func shortest(paths []string) (out []string) {
	for _, path := range paths {
		if !slices.ContainsFunc(out, func(dir string) bool { return cli.Lies(path, dir) }) {
			out = append(out, path)
		}
	}
	return out
}

// MakeDefaultRoot creates the default working directory, unless another one is configured.
func MakeDefaultRoot(cfg config.Config) error {
	if !IsDefaultRoot(cfg) {
		return nil
	}
	if err := os.MkdirAll(cfg.Projects.Roots[0], 0o700); err != nil {
		return WithKind(ErrConfig, fmt.Errorf("make projects.roots: %w; name another directory there", err))
	}
	return nil
}

// IsDefaultRoot reports whether no working directory is configured.
func IsDefaultRoot(cfg config.Config) bool {
	return slices.Equal(cfg.Projects.Roots, config.Default().Projects.Roots)
}
