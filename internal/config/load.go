package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TokenVariable is the environment variable that may hold the token. It wins over the file.
const TokenVariable = "DUCTOR_TELEGRAM_TOKEN"

// maxFile bounds what is read: no configuration is this long.
const maxFile = 1 << 20

// Environment is what a configuration depends on besides its file.
type Environment struct {
	Getenv func(name string) string
}

// OSEnvironment is that of this process.
func OSEnvironment() Environment { return Environment{Getenv: os.Getenv} }

// Default is the configuration of an empty file, its paths made absolute where the environment tells how.
// It has no token, so Validate refuses it until one is set.
func Default() Config {
	c := defaults()
	_ = resolve(&c, OSEnvironment()) // a path that stays relative is found by Validate
	return c
}

// Load reads the file at path over the defaults, refuses one that others can write, finds the token (environment, file, token_file), makes
// paths absolute and validates the whole. A file that is not there gives an error matching fs.ErrNotExist;
// what is wrong with one that is gives *Invalid, complete. No error contains a token.
func Load(path string) (Config, error) { return LoadFrom(path, OSEnvironment()) }

// LoadFrom is Load in a given environment.
func LoadFrom(path string, env Environment) (Config, error) {
	text, info, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, notFound(path)
	}
	if err == nil {
		err = checkTrust(path, info)
	}
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return build(path, text, info.Mode(), env)
}

// build makes a Config of the text of the file at path.
func build(path string, text []byte, mode fs.FileMode, env Environment) (Config, error) {
	doc, c, found := decode(text)
	if doc.unreadable {
		return Config{}, found.asError(path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Config{}, fmt.Errorf("find %s: %w", path, err)
	}
	c.File = abs
	if len(c.Secrets()) > 0 && readable(mode) {
		c.Warnings = append(c.Warnings, warnReadable(path, "secrets", mode))
	}
	found = append(found, resolve(&c, env)...)
	if !found.has(keyTokenFile) {
		found = append(found, findToken(&c, env)...)
	}
	found = append(found, found.news(c.check())...)
	if len(found) > 0 {
		doc.locate(found)
		return Config{}, found.asError(path)
	}
	c.Warnings = append(c.Warnings, c.doubts()...)
	c.ModelNames = c.modelNames(doc)
	return c, nil
}

const (
	keyToken     = "telegram.token"
	keyTokenFile = "telegram.token_file"
)

// findToken settles where the token comes from.
func findToken(c *Config, env Environment) (found problems) {
	t := &c.Telegram
	if value := strings.TrimSpace(env.Getenv(TokenVariable)); value != "" {
		t.Token = Secret(value)
		return nil
	}
	if t.TokenFile == "" {
		return nil
	}
	if t.Token != "" {
		found.add(keyTokenFile, "token is set as well; keep one of the two")
		return found
	}
	text, info, err := readSmall(t.TokenFile)
	if err != nil {
		found.add(keyTokenFile, "cannot be read: %v", err)
		return found
	}
	t.Token = Secret(strings.TrimSpace(string(text)))
	if t.Token == "" {
		found.add(keyTokenFile, "%s is empty; it should hold the token and nothing else", t.TokenFile)
	}
	if err := checkFile(t.TokenFile, info); err != nil {
		found.add(keyTokenFile, "%v", err)
	} else if readable(info.Mode()) {
		c.Warnings = append(c.Warnings, warnReadable(t.TokenFile, "the token", info.Mode()))
	}
	return found
}

func readable(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

func warnReadable(path, what string, mode fs.FileMode) string {
	return fmt.Sprintf("%s holds %s and has mode %04o, so that others on this machine may get at it; run: chmod 600 %s",
		path, what, mode.Perm(), shellWord(path))
}

func readSmall(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return bytes.TrimPrefix(text, []byte(byteOrderMark)), info, err
}

// byteOrderMark is what editors of Windows put before a text. TOML knows none.
const byteOrderMark = "\ufeff"

// resolve makes every path absolute: "~" is the home directory. It also fills in those that follow from
// others: where state lies by the system's rule, and the first root to work in.
func resolve(c *Config, env Environment) problems {
	var found problems
	home := env.Getenv("HOME")
	if c.Storage.Dir == "" {
		c.Storage.Dir = stateDir(env)
	}
	if c.Projects.DefaultDir == "" && len(c.Projects.Roots) > 0 {
		c.Projects.DefaultDir = c.Projects.Roots[0]
	}
	for key, p := range c.paths() {
		expanded, err := absolute(*p, home)
		if err != nil {
			found.add(key, "%v", err)
			continue
		}
		*p = expanded
	}
	found = append(found, resolvePrograms(c, home)...)
	for name, p := range c.Projects.Named {
		expanded, err := absolute(p.Dir, home)
		if err != nil {
			found.add(dotted([]string{"projects", "named", name, "dir"}), "%v", err)
		}
		p.Dir = expanded
		c.Projects.Named[name] = p
	}
	found = append(found, resolveSandbox(c, home)...)
	return append(found, resolveTasks(c, home)...)
}

// stateDir is where the system keeps state; it may begin with ~.
func stateDir(env Environment) string {
	if state := env.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "ductor")
	}
	return "~/.local/state/ductor"
}

// StateDir is the default of storage.dir for this user: one directory, whatever the configuration says.
func StateDir() string {
	dir := stateDir(OSEnvironment())
	if abs, err := absolute(dir, os.Getenv("HOME")); err == nil {
		return abs
	}
	return filepath.Join(os.TempDir(), "ductor")
}

// absolute expands ~. An empty path stays empty: it means that none is set.
func absolute(path, home string) (string, error) {
	switch {
	case path == "" || filepath.IsAbs(path) && filepath.Clean(path) == path:
		return path, nil
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	case path != "~" && !strings.HasPrefix(path, "~/"):
		return path, fmt.Errorf("%q must be absolute or begin with ~/", path)
	case !filepath.IsAbs(home):
		return path, fmt.Errorf("%q needs the variable HOME, which is not set", path)
	}
	return filepath.Join(home, path[1:]), nil
}

// resolvePrograms expands ~ in the programs that are also looked up by name, and in the words of a command.
func resolvePrograms(c *Config, home string) (found problems) {
	expand := func(key, path string) string {
		if path != "~" && !strings.HasPrefix(path, "~/") {
			return path
		}
		expanded, err := absolute(path, home)
		if err != nil {
			found.add(key, "%v", err)
		}
		return expanded
	}
	c.Agents.Gemini.Path = expand("agents.gemini.path", c.Agents.Gemini.Path)
	c.Agents.Copilot.Path = expand("agents.copilot.path", c.Agents.Copilot.Path)
	for name, acp := range c.Agents.ACP {
		acp.Path = expand(dotted([]string{"agents", "acp", name, "path"}), acp.Path)
		c.Agents.ACP[name] = acp
	}
	for i, word := range c.Voice.Command { // as a shell does: a model's file is named there too
		c.Voice.Command[i] = expand("voice.command", word)
	}
	return found
}

// paths are all settings that name a path and nothing else, by key.
func (c *Config) paths() map[string]*string {
	all := map[string]*string{
		"telegram.token_file":  &c.Telegram.TokenFile,
		"telegram.api_files":   &c.Telegram.APIFiles,
		"agents.claude.path":   &c.Agents.Claude.Path,
		"agents.codex.path":    &c.Agents.Codex.Path,
		"projects.default_dir": &c.Projects.DefaultDir,
		"storage.dir":          &c.Storage.Dir,
		"log.file":             &c.Log.File,
	}
	for i := range c.Projects.Roots {
		all[fmt.Sprintf("projects.roots[%d]", i)] = &c.Projects.Roots[i]
	}
	for i := range c.Projects.AddDirs {
		all[fmt.Sprintf("projects.add_dirs[%d]", i)] = &c.Projects.AddDirs[i]
	}
	return all
}
