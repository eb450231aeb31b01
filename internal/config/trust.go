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

// PathVariable is the environment variable with the absolute path of the configuration file.
const PathVariable = "DUCTOR_CONFIG"

// DefaultPath returns the path of the configuration file: $DUCTOR_CONFIG, or else ductor/config.toml in the user's
// configuration directory. The path never depends on the working directory, because the working directory may be a
// repository of a stranger.
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

// notFound returns the error for a missing configuration file. If the working directory contains a config.toml, the
// error explains that ductor does not read it.
func notFound(path string) error {
	hint := ""
	if _, err := os.Lstat("config.toml"); err == nil && filepath.Base(path) == "config.toml" {
		hint = ". The config.toml in the working directory is not read; if it is yours, move it there"
	}
	return missing("there is no configuration at " + path + "; ductor setup writes it" + hint)
}

// missing is an error that matches fs.ErrNotExist, with a text for users.
type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// checkTrust returns an error if another user can write the configuration. It checks the opened file, the directory of
// path, and, if path is a symbolic link, the directory of its target.
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

// checkFile returns an error if a file or directory belongs to another user, or if other users can write it.
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

func shellWord(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$&;|<>()*?[]`!#~") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
