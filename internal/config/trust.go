package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// PathVariable is the environment variable for the absolute path of the configuration file.
const PathVariable = "DUCTOR_CONFIG"

// DefaultPath returns the default path of the configuration: $DUCTOR_CONFIG, or else config.toml in ductor's directory
// of the user's configuration. It never depends on the working directory, which may be a stranger's repository.
func DefaultPath(env Environment) (string, error) {
	if path := env.Getenv(PathVariable); path != "" {
		if !filepath.IsAbs(path) {
			return "", fmt.Errorf("%s is %q and must be absolute", PathVariable, path)
		}
		return filepath.Clean(path), nil
	}
	dir := env.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := env.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New(
				"the variable HOME is not set, so no configuration can be found; name one with -c FILE")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "ductor", "config.toml"), nil
}

// notFound returns the error for a missing configuration. The error mentions a config.toml in the working directory,
// which ductor ignores.
func notFound(path string) error {
	hint := ""
	if _, err := os.Lstat("config.toml"); err == nil && filepath.Base(path) == "config.toml" {
		hint = ". The config.toml in the working directory is not read; if it is yours, move it there"
	}
	return missing("there is no configuration at " + path + "; ductor setup writes it" + hint)
}

// missing is the error for a missing file. It matches fs.ErrNotExist, but contains a text for users.
type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// checkTrust rejects a configuration that another user can write. It checks the file opened, the directory of path and,
// if path is a link, the directory of the link's target.
func checkTrust(path string, opened fs.FileInfo) error {
	errs := []error{checkFile(path, opened)}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find %s: %w", path, err)
	}
	dirs := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil {
			err = checkFile(dir, info)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkFile rejects files and directories that belong to another user or that other users may write.
func checkFile(path string, info fs.FileInfo) error {
	const why = "whoever can write it owns the bot"
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user with id %d, and %s; run: chown %d %s",
			path, stat.Uid, why, os.Geteuid(), shellWord(path))
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s has mode %04o, so that others may write it, and %s; run: chmod go-w %s",
			path, mode, why, shellWord(path))
	}
	return nil
}

// shellWord quotes a path for a shell.
func shellWord(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$&;|<>()*?[]`!#~") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
