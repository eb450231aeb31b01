package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"ductor/internal/rooted"
)

// A CLI runs ductor as a hook with the arguments Verb, the agent's name, StateFlag, and ductor's state directory.
const (
	Verb      = "hook"
	StateFlag = "--ductor-state" // a unique word, by which ductor also recognizes its hooks in settings
	ThenFlag  = "--then"         // precedes the user's own program; the hook also runs this program
)

// Machine is the environment of the CLIs and of ductor.
type Machine struct {
	Home    string                   // the user's home directory
	Getenv  func(name string) string // returns environment variables, which may choose other settings directories
	Program string                   // absolute path of ductor
	State   string                   // absolute path of ductor's state directory; also identifies this ductor's hooks
	// Accounts returns the home directories of an agent's additional accounts. It may be nil.
	Accounts func(agent string) []string
}

// File is a settings file of a CLI before and after a change.
type File struct {
	Agent         string // name of the agent, such as "claude"
	Path          string
	Before, After []byte // Before is nil if the file does not exist
	Hooked        bool   // whether the file contained ductor's hooks before the change
}

// ErrNoCLI means that this user has never started a CLI that supports hooks.
var ErrNoCLI = errors.New("neither Claude Code nor Codex nor Gemini has a directory of settings here; start one of them once")

// edit adds or removes ductor's hooks in the text of a settings file. It also returns whether the old text contained
// the hooks. An edit that removes hooks removes only those of m.State, or those of any ductor if m.State is empty.
type edit func(text []byte, m Machine) (next []byte, had bool, err error)

// settings is the settings file of a CLI.
type settings struct {
	agent, folder string // folder is the name of the settings directory below the user's home directory
	// variable is the name of an environment variable. If the user sets the variable to an account's directory, the CLI
	// uses the settings directory of this account, instead of folder.
	variable    string
	inHome      string // path of the settings directory below the directory of an account
	name        string
	add, remove edit
}

// allSettings returns the settings files of all CLIs that support hooks.
func allSettings() []settings {
	claude := jsonHooks{"claude", []event{{"PermissionRequest", 24 * 3600}, {"Notification", 10}, {"Stop", 10}}}
	gemini := jsonHooks{"gemini", []event{{"Notification", 10_000}, {"AfterAgent", 10_000}}} // timeouts in milliseconds
	return []settings{
		{"claude", ".claude", "CLAUDE_CONFIG_DIR", "", "settings.json", claude.addHooks, claude.removeHooks},
		{"codex", ".codex", "CODEX_HOME", "", "config.toml", addNotify, removeNotify},
		{"gemini", ".gemini", "GEMINI_CLI_HOME", ".gemini", "settings.json", gemini.addHooks, gemini.removeHooks},
	}
}

// dirs returns the directories with the settings of a CLI. The first belongs to the user's own account.
func (m Machine) dirs(s settings) []string {
	dirs := []string{filepath.Join(m.Home, s.folder)}
	if home := m.Getenv(s.variable); home != "" {
		dirs[0] = filepath.Join(home, s.inHome)
	}
	if m.Accounts != nil {
		for _, home := range m.Accounts(s.agent) {
			dirs = append(dirs, filepath.Join(home, s.inHome))
		}
	}
	return dirs
}

// Installed returns the settings files of the CLIs that this user has started, one for each account. In each File,
// After is the content of the file with ductor's hooks. Installed returns ErrNoCLI if the user has never started such a
// CLI.
func (m Machine) Installed() ([]File, error) {
	return m.editFiles(m.dirs, func(s settings) edit { return s.add })
}

// Uninstalled is like Installed, but After is the content without the hooks of any ductor. The result also contains the
// settings files of former accounts and of the default folders, because ductor may have installed its hooks there
// before the user chose another folder.
func (m Machine) Uninstalled() ([]File, error) {
	recorded, err := m.recorded()
	if err != nil {
		return nil, err
	}
	dirs := func(s settings) []string {
		dirs := append(m.dirs(s), filepath.Join(m.Home, s.folder))
		for _, h := range recorded {
			if h.Agent == s.agent {
				dirs = append(dirs, h.Dir)
			}
		}
		return dirs
	}
	m.State = ""
	return m.editFiles(dirs, func(s settings) edit { return s.remove })
}

// Abandoned returns the settings files with ductor's hooks that Installed does not return.
func (m Machine) Abandoned() ([]File, error) {
	current, err := m.Installed()
	if err != nil && !errors.Is(err, ErrNoCLI) {
		return nil, err
	}
	all, err := m.Uninstalled()
	return slices.DeleteFunc(all, func(f File) bool {
		return !f.Hooked || slices.ContainsFunc(current, func(other File) bool { return other.Path == f.Path })
	}), err
}

func (m Machine) editFiles(dirs func(settings) []string, how func(settings) edit) (files []File, err error) {
	for _, s := range allSettings() {
		for _, dir := range dirs(s) {
			f := File{Agent: s.agent, Path: s.pathIn(dir)}
			if f.Path == "" {
				continue // the user has never started this CLI with this account
			}
			if slices.ContainsFunc(files, func(known File) bool { return known.Path == f.Path }) {
				continue // several accounts can share one settings file, which is in the result only once
			}
			if err := m.edit(&f, how(s)); err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, ErrNoCLI
	}
	return files, nil
}

// pathIn returns the path of the settings file in a directory, without symbolic links. The file may not exist. If the
// directory does not exist, pathIn returns "".
func (s settings) pathIn(dir string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	path := filepath.Join(dir, s.name)
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to // replace the target of the symbolic link, not the link
	}
	return path
}

func (m Machine) edit(f *File, how edit) (err error) {
	if f.Before, err = os.ReadFile(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the settings of %s: %w", f.Agent, err)
	}
	if f.After, f.Hooked, err = how(f.Before, m); err != nil {
		return fmt.Errorf("%s: %w; nothing was written", f.Path, err)
	}
	return nil
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

func (m Machine) hookArgs(agent string) []string {
	return []string{m.Program, Verb, agent, StateFlag, m.State}
}

// shellCommand returns the command line of the hook for a shell.
func (m Machine) shellCommand(agent string) string {
	var words []string
	for _, arg := range m.hookArgs(agent) {
		words = append(words, shellWord(arg))
	}
	return strings.Join(words, " ")
}

func shellWord(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
