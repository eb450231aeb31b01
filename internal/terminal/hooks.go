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

// Verb is the argument by which a CLI runs ductor as a hook. The agent follows it, then StateFlag and ductor's state directory.
const (
	Verb      = "hook"
	StateFlag = "--ductor-state" // no other program's hook has it: it says which hooks are ductor's
	ThenFlag  = "--then"         // the program that was there before follows, to be run too
)

// Machine is where the CLIs and ductor are.
type Machine struct {
	Home    string                   // of the user
	Getenv  func(name string) string // for directories that the user moved
	Program string                   // of ductor, absolute
	State   string                   // ductor's state directory, absolute
}

// File is a file of settings, as it is and as it is to be.
type File struct {
	Agent         string // such as "claude"
	Path          string
	Before, After []byte // Before is nil where there is no file
	Hooked        bool   // Before has hooks of ductor
}

// ErrNoCLI says that no CLI with hooks was ever used by this user.
var ErrNoCLI = errors.New("neither Claude Code nor Codex nor Gemini has a directory of settings here; start one of them once")

// edit gives the text of settings with ductor's hooks or without them. had says that they were there.
type edit func(text []byte, m Machine) (next []byte, had bool, err error)

// settings is a file that a CLI reads its hooks from.
type settings struct {
	agent, folder, variable, name string
	add, remove                   edit
}

// all are the CLIs that have hooks.
func all() []settings {
	claude := jsonHooks{"claude", []event{{"PermissionRequest", 24 * 3600}, {"Notification", 10}, {"Stop", 10}}}
	gemini := jsonHooks{"gemini", []event{{"Notification", 10_000}, {"AfterAgent", 10_000}}} // in milliseconds there
	return []settings{
		{"claude", ".claude", "CLAUDE_CONFIG_DIR", "settings.json", claude.add, claude.remove},
		{"codex", ".codex", "CODEX_HOME", "config.toml", addNotify, removeNotify},
		{"gemini", ".gemini", "", "settings.json", gemini.add, gemini.remove},
	}
}

// Installed gives the files of the CLIs that the user has, with ductor's hooks in After. ErrNoCLI where there is none.
func (m Machine) Installed() ([]File, error) {
	return m.files(func(s settings) edit { return s.add })
}

// Uninstalled is Installed without ductor's hooks.
func (m Machine) Uninstalled() ([]File, error) {
	return m.files(func(s settings) edit { return s.remove })
}

func (m Machine) files(how func(settings) edit) (files []File, err error) {
	for _, s := range all() {
		dir := filepath.Join(m.Home, s.folder)
		if s.variable != "" && m.Getenv(s.variable) != "" {
			dir = m.Getenv(s.variable)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue // the CLI was never started
		}
		f := File{Agent: s.agent, Path: filepath.Join(dir, s.name)}
		if to, err := filepath.EvalSymlinks(f.Path); err == nil {
			f.Path = to // the link stays one
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

// Changed says whether the file is to be written.
func (f File) Changed() bool { return !bytes.Equal(f.Before, f.After) }

// Diff shows what changes.
func (f File) Diff() string { return udiff.Unified(f.Path, f.Path, string(f.Before), string(f.After)) }

// Write writes After, whole or not at all. A file that changed since it was read stays.
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

// args is what a CLI runs for an agent.
func (m Machine) args(agent string) []string {
	return []string{m.Program, Verb, agent, StateFlag, m.State}
}

// line is args as a line of a shell.
func (m Machine) line(agent string) string {
	var words []string
	for _, arg := range m.args(agent) {
		if strings.Trim(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") != "" {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
