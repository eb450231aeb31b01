package claude

import (
	"encoding/base64"
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

// maxImage is what the model's API takes for one picture, before base64.
const maxImage = 5 << 20

// promptText is the prompt as Claude must read it to take it as text: a leading slash would be a command
// of its own, and a space before it undoes that.
func promptText(prompt string) string {
	if strings.HasPrefix(prompt, "/") {
		return " " + prompt
	}
	return prompt
}

// promptOf is what Claude reads of req.
func promptOf(req cli.Request) string {
	switch req.Task {
	case cli.TaskCompact:
		return strings.TrimSpace("/compact " + req.Prompt)
	case cli.TaskCommand:
		return req.Prompt
	}
	return promptText(req.Prompt)
}

// userLine is req's prompt with its images as one line of stream-json input. Claude echoes id, if
// there is one, once it took the message up.
func userLine(req cli.Request, id string) ([]byte, error) {
	content := make([]map[string]any, 0, len(req.Images)+1)
	for _, image := range req.Images {
		b, err := imageBlock(image)
		if err != nil {
			return nil, err
		}
		content = append(content, b)
	}
	if text := promptOf(req); text != "" {
		content = append(content, map[string]any{"type": "text", "text": text})
	}
	l := map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": content}}
	if id != "" {
		l["uuid"] = id
	}
	return jsonLine(l), nil
}

func imageBlock(image cli.Image) (map[string]any, error) {
	data, err := os.ReadFile(image.Path)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if len(data) > maxImage {
		return nil, fmt.Errorf("the image has %d bytes, and Claude takes %d at most", len(data), maxImage)
	}
	return map[string]any{"type": "image", "source": map[string]any{
		"type": "base64", "media_type": image.MIME, "data": base64.StdEncoding.EncodeToString(data),
	}}, nil
}
