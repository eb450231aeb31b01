package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"ductor/cli"
)

// settingsVar names the file with settings that win over those of the user and the project.
const settingsVar = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"

// systemSettings is where that file is when nobody says otherwise.
const systemSettings = "/etc/gemini-cli/settings.json"

// settle puts what only Gemini's settings can say into a file, and the file's name into the request's environment.
// Above all it switches the retention of sessions off: with it on, Gemini deletes sessions that were resumed.
func (p *Provider) settle(req cli.Request) (cli.Request, error) {
	env := p.env(req)
	settings, err := p.inherited(env)
	if err != nil {
		return req, err
	}
	put(settings, false, "general", "sessionRetention", "enabled")
	if req.MaxTurns > 0 {
		put(settings, req.MaxTurns, "model", "maxSessionTurns")
	}
	if value(env, "GEMINI_API_KEY") != "" && p.userAuth(env) == "" && text(settings, authPath()...) == "" {
		put(settings, "gemini-api-key", authPath()...) // which its live mode does not find out by itself
	}
	raw, err := json.Marshal(settings) // sorts its keys
	if err != nil {
		return req, fmt.Errorf("write Gemini's settings: %w", err)
	}
	path, err := p.keep("settings", ".json", raw)
	if err != nil {
		return req, err
	}
	req.Env = maps.Clone(req.Env)
	if req.Env == nil {
		req.Env = map[string]string{}
	}
	req.Env[settingsVar] = path
	return req, nil
}

func authPath() []string { return []string{"security", "auth", "selectedType"} }

// inherited are the settings of the machine, which ours are added to.
func (p *Provider) inherited(env []string) (map[string]any, error) {
	path := value(env, settingsVar)
	if path == "" {
		path = systemSettings
	}
	if filepath.Dir(path) == p.stateDir() { // ours, of an earlier look
		path = systemSettings
	}
	settings := map[string]any{}
	raw, err := p.opts.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return settings, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil { // to leave them out might allow what the machine's owner forbids
		return nil, cli.Failf(cli.Refused, Agent, "the settings of this machine (%s) cannot be read: %v", path, err)
	}
	return settings, nil
}

// userAuth is the way of log-in that the user chose; empty if none.
func (p *Provider) userAuth(env []string) string {
	settings := map[string]any{}
	raw, err := p.opts.ReadFile(filepath.Join(value(env, "HOME"), ".gemini", "settings.json"))
	if err != nil || json.Unmarshal(raw, &settings) != nil {
		return ""
	}
	return text(settings, authPath()...)
}

// put sets a value deep in settings.
func put(settings map[string]any, v any, path ...string) {
	for ; len(path) > 1; path = path[1:] {
		next, ok := settings[path[0]].(map[string]any)
		if !ok {
			next = map[string]any{}
			settings[path[0]] = next
		}
		settings = next
	}
	settings[path[0]] = v
}

// text is a string deep in settings; empty if there is none.
func text(settings map[string]any, path ...string) string {
	for ; len(path) > 1; path = path[1:] {
		settings, _ = settings[path[0]].(map[string]any)
	}
	s, _ := settings[path[0]].(string)
	return s
}

func (p *Provider) stateDir() string {
	if p.opts.StateDir != "" {
		return p.opts.StateDir
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("ductor-gemini-%d", os.Getuid()))
}

// keep writes a file that is named by what is in it, unless it is there.
func (p *Provider) keep(kind, ext string, content []byte) (string, error) {
	dir := p.stateDir()
	if err := private(dir); err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(dir, kind+"-"+hex.EncodeToString(sum[:8])+ext)
	if have, err := os.ReadFile(path); err == nil && string(have) == string(content) {
		return path, nil
	}
	f, err := os.CreateTemp(dir, kind+"-*")
	if err != nil {
		return "", fmt.Errorf("write Gemini's %s: %w", kind, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("write Gemini's %s: %w", kind, err), os.Remove(f.Name()))
	}
	return path, nil
}

// private makes a directory that nobody else can put files into.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a place for Gemini's settings: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the place of Gemini's settings: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ownedByUs(info) {
		return fmt.Errorf("the place of Gemini's settings, %s, is open to others", dir)
	}
	return nil
}

func cutVar(kv string) (name, value string, ok bool) { return strings.Cut(kv, "=") }
