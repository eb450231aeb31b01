package claude

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// promptFiles name the files that hold the system prompts of one process: what is on a command line is
// everybody's to read. Empty where there is no such prompt.
type promptFiles struct{ dir, replace, add string }

// promptDirs begins the names of the directories that prompts are in.
const promptDirs = "ductor-claude-"

// leftPrompts are the files that the previous process of ductor put below parent, by the name it noted.
func leftPrompts(parent, name string) promptFiles {
	if !strings.HasPrefix(name, promptDirs) || filepath.Base(name) != name {
		return promptFiles{}
	}
	if parent == "" {
		parent = os.TempDir()
	}
	return promptFiles{dir: filepath.Join(parent, name)}
}

// name is what leftPrompts finds them by.
func (f promptFiles) name() string {
	if f.dir == "" {
		return ""
	}
	return filepath.Base(f.dir)
}

// paths are the files there are.
func (f promptFiles) paths() []string {
	return slices.DeleteFunc([]string{f.replace, f.add}, func(path string) bool { return path == "" })
}

// writePrompts puts req's system prompts into a directory of their own below parent.
func writePrompts(parent string, req cli.Request) (_ promptFiles, err error) {
	replace, add := ownPrompts(req)
	if replace == "" && add == "" {
		return promptFiles{}, nil
	}
	if parent != "" {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return promptFiles{}, fmt.Errorf("make a place for system prompts: %w", err)
		}
	}
	dir, err := os.MkdirTemp(parent, promptDirs)
	if err != nil {
		return promptFiles{}, fmt.Errorf("make a place for system prompts: %w", err)
	}
	files := promptFiles{dir: dir}
	files.replace, err = writePrompt(dir, "system", replace)
	if err == nil {
		files.add, err = writePrompt(dir, "append", add)
	}
	if err != nil {
		return promptFiles{}, errors.Join(fmt.Errorf("write system prompt: %w", err), files.remove())
	}
	return files, nil
}

func writePrompt(dir, name, text string) (path string, err error) {
	if text == "" {
		return "", nil
	}
	path = filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// ownPrompts are the system prompts of req that its extra arguments leave room for: Claude refuses to
// start when it is given one twice, and what the owner configured wins.
func ownPrompts(req cli.Request) (replace, add string) {
	replace, add = req.SystemPrompt, req.AppendPrompt
	if named(req.ExtraArgs, "--system-prompt") {
		replace = ""
	}
	if named(req.ExtraArgs, "--append-system-prompt") {
		add = ""
	}
	return replace, add
}

// named says whether args have flag, or its twin that takes a file.
func named(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == flag || name == flag+"-file"
	})
}

// remove is for the end of the process. Idempotent.
func (f promptFiles) remove() error {
	if f.dir == "" {
		return nil
	}
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("remove system prompts: %w", err)
	}
	return nil
}
