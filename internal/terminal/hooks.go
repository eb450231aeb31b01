package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"ductor/internal/rooted"
)

// A CLI runs ductor as a hook with the arguments Verb, the agent's name, StateFlag, and ductor's state directory.
const (
	Verb      = "hook"
	StateFlag = "--ductor-state" // also marks hooks in settings as hooks of ductor, because it is unique
	ThenFlag  = "--then"         // precedes the user's own program, which the hook runs, too
)

// Machine is the environment of the CLIs and of ductor.
type Machine struct {
	Home    string                   // the user's home directory
	Getenv  func(name string) string // returns environment variables, which may name other settings directories
	Program string                   // absolute path of ductor
	State   string                   // absolute path of ductor's state directory
}

// File is a settings file of a CLI before and after a change.
type File struct {
	Agent         string // such as "claude"
	Path          string
	Before, After []byte // Before is nil if the file does not exist
	Hooked        bool   // whether Before contains ductor's hooks
}

// ErrNoCLI means that this user has never started a CLI that supports hooks.
var ErrNoCLI = errors.New("neither Claude Code nor Codex nor Gemini has a directory of settings here; start one of them once")

// edit adds or removes ductor's hooks in the text of a settings file. The result had is true if the text already
// contained them.
type edit func(text []byte, m Machine) (next []byte, had bool, err error)

// settings is the settings file of a CLI.
type settings struct {
	agent, folder, variable, name string
	add, remove                   edit
}

// allSettings returns the settings files of all CLIs that support hooks.
func allSettings() []settings {
	claude := jsonHooks{"claude", []event{{"PermissionRequest", 24 * 3600}, {"Notification", 10}, {"Stop", 10}}}
	gemini := jsonHooks{"gemini", []event{{"Notification", 10_000}, {"AfterAgent", 10_000}}} // in milliseconds
	return []settings{
		{"claude", ".claude", "CLAUDE_CONFIG_DIR", "settings.json", claude.addHooks, claude.removeHooks},
		{"codex", ".codex", "CODEX_HOME", "config.toml", addNotify, removeNotify},
		{"gemini", ".gemini", "", "settings.json", gemini.addHooks, gemini.removeHooks},
	}
}

// Installed returns the settings files of the CLIs that this user has started. File.After contains ductor's hooks. It
// returns ErrNoCLI if the user has started none.
func (m Machine) Installed() ([]File, error) {
	return m.editFiles(func(s settings) edit { return s.add })
}

// Uninstalled is like Installed, but File.After does not contain ductor's hooks.
func (m Machine) Uninstalled() ([]File, error) {
	return m.editFiles(func(s settings) edit { return s.remove })
}

func (m Machine) editFiles(how func(settings) edit) (files []File, err error) {
	for _, s := range allSettings() {
		dir := filepath.Join(m.Home, s.folder)
		if s.variable != "" && m.Getenv(s.variable) != "" {
			dir = m.Getenv(s.variable)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue // this CLI was never started
		}
		f := File{Agent: s.agent, Path: filepath.Join(dir, s.name)}
		if to, err := filepath.EvalSymlinks(f.Path); err == nil {
			f.Path = to // replace the target of a symbolic link, not the link
		}
		if f.Before, err = os.ReadFile(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read the settings of %s: %w", s.agent, err)
		}
		if f.After, f.Hooked, err = how(s)(f.Before, m); err != nil {
			return nil, fmt.Errorf("%s: %w; nothing was written", f.Path, err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, ErrNoCLI
	}
	return files, nil
}

// Changed reports whether After differs from Before.
func (f File) Changed() bool { return !bytes.Equal(f.Before, f.After) }

// Diff returns the changes in unified format.
func (f File) Diff() string { return udiff.Unified(f.Path, f.Path, string(f.Before), string(f.After)) }

// Write atomically replaces the file with After. It returns an error if the file has changed since it was read.
func (f File) Write() error {
	now, err := os.ReadFile(f.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the settings of %s: %w", f.Agent, err)
	}
	if !bytes.Equal(now, f.Before) {
		return fmt.Errorf("%s has just been changed by another program; nothing was written to it, try again", f.Path)
	}
	if err := rooted.ReplaceFile(f.Path, f.After, nil); err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	return nil
}

// hookArgs returns the command line of the hook.
func (m Machine) hookArgs(agent string) []string {
	return []string{m.Program, Verb, agent, StateFlag, m.State}
}

// shellCommand returns the command line of the hook for a shell.
func (m Machine) shellCommand(agent string) string {
	var words []string
	for _, arg := range m.hookArgs(agent) {
		if strings.Trim(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") != "" {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
