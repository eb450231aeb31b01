package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"ductor/internal/secrets"
)

// TokenVariable is the environment variable with the bot token. It overrides the file.
const TokenVariable = "DUCTOR_TELEGRAM_TOKEN"

const maxFile = 1 << 20

// Environment gives access to the environment variables on which a configuration depends.
type Environment struct {
	Getenv func(name string) string
}

// OSEnvironment returns the Environment of this process.
func OSEnvironment() Environment { return Environment{Getenv: os.Getenv} }

// Default returns the configuration of an empty file. Load would reject this configuration, because it has no token.
// The paths are absolute, unless HOME is not set.
func Default() Config {
	var d decoder
	c := d.defaults()
	_ = resolve(&c, OSEnvironment()) // after an error, paths may stay relative
	return c
}

// Load reads the file at path, adds defaults, finds the bot token, makes paths absolute, and checks all settings. The
// token comes from TokenVariable, telegram.token or telegram.token_file. Load rejects a file that other users can
// write. If the file is missing, the error matches fs.ErrNotExist. If the file contains mistakes, the error is an
// *Invalid. No error contains a token.
func Load(path string) (Config, error) { return LoadFrom(path, OSEnvironment()) }

// LoadFrom is like Load, but uses the given environment variables.
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

// build decodes and checks text, the content of the file at path.
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
	found = append(found, found.withoutKnown(c.check())...)
	c.checkAccounts(&found, env)
	if len(found) > 0 {
		doc.locate(found)
		invalid := found.invalid(path)
		invalid.decoded = &c
		return Config{}, invalid
	}
	c.Warnings = append(c.Warnings, c.doubts()...)
	c.ModelNames = c.modelNames(doc)
	return c, nil
}

// Mistake returns an *Invalid for a wrong value that only the caller can detect. It reads the file again to find the
// position of the key. Mistake quotes the elements of key if necessary.
func (c Config) Mistake(err error, key ...string) error {
	found := problems{{Key: dotted(key), Text: err.Error()}}
	if text, _, readErr := readSmall(c.File); readErr == nil { // without the file, the mistake has no position
		doc, _, _ := decode(text)
		doc.locate(found)
	}
	return found.asError(c.File)
}

const (
	keyToken     = "telegram.token"
	keyTokenFile = "telegram.token_file"
)

// findToken sets the token from TokenVariable or from the file telegram.token_file.
func findToken(c *Config, env Environment) (found problems) {
	t := &c.Telegram
	if value := strings.TrimSpace(env.Getenv(TokenVariable)); value != "" {
		t.Token = secrets.Value(value)
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
	t.Token = secrets.Value(strings.TrimSpace(string(text)))
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

func warnReadable(path, content string, mode fs.FileMode) string {
	return fmt.Sprintf("%s holds %s and has mode %04o, so that others on this machine may get at it; run: chmod 600 %s",
		path, content, mode.Perm(), shellWord(path))
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

// byteOrderMark is the beginning of texts from some Windows editors. It is not valid TOML.
const byteOrderMark = "\ufeff"

// resolve sets the paths whose defaults depend on other settings or on the environment. It then makes every path
// absolute. A path may begin with "~", which means the home directory.
func resolve(c *Config, env Environment) (found problems) {
	if c.Storage.Dir == "" {
		c.Storage.Dir = stateDir(env)
	}
	if c.Projects.DefaultDir == "" && len(c.Projects.Roots) > 0 {
		c.Projects.DefaultDir = c.Projects.Roots[0]
	}
	visit(setting{value: reflect.ValueOf(c).Elem()}, func(s setting) { found.expand(s, env.Getenv("HOME")) })
	completeSeeds(c, env.Getenv("HOME"))
	return found
}

// expand makes the paths in a setting absolute. The setting's tag "check" determines which values are paths. If the tag
// is "path", all values are paths. If it is "program", the values with a slash are paths. If it is "command", the
// values that begin with ~ are paths.
func (p *problems) expand(s setting, home string) {
	rule := s.tag.Get("check")
	one := func(key string, v reflect.Value) {
		path := v.String()
		isHome := path == "~" || strings.HasPrefix(path, "~/")
		if !(rule == "path" || rule == "program" && strings.Contains(path, "/") || rule == "command" && isHome) {
			return
		}
		expanded, err := absolute(path, home)
		if err != nil && rule == "program" {
			err = fmt.Errorf("%w, or be a name that is looked up", err)
		}
		if err != nil {
			p.add(key, "%v", err)
		}
		v.SetString(expanded)
	}
	switch s.value.Kind() {
	case reflect.String:
		one(s.key, s.value)
	case reflect.Slice:
		for i := range s.value.Len() {
			if item := s.value.Index(i); item.Kind() == reflect.String {
				one(fmt.Sprintf("%s[%d]", s.key, i), item)
			}
		}
	}
}

// stateDir returns the default directory for ductor's state. The path may begin with ~.
func stateDir(env Environment) string {
	if state := env.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "ductor")
	}
	return "~/.local/state/ductor"
}

// StateDir returns the default of storage.dir for the user of this process.
func StateDir() string {
	dir := stateDir(OSEnvironment())
	if abs, err := absolute(dir, os.Getenv("HOME")); err == nil {
		return abs
	}
	return filepath.Join(os.TempDir(), "ductor")
}

// absolute expands ~ and cleans a path. It returns an empty path unchanged.
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
