package claude

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// promptFiles name the files that hold the system prompts of a process, and the settings of the owner's extra arguments: what is on
// a command line is everybody's to read. Empty where there is no such prompt.
type promptFiles struct{ replace, add, settings string }

// paths are the files there are.
func (f promptFiles) paths() []string {
	return slices.DeleteFunc([]string{f.replace, f.add, f.settings}, func(path string) bool { return path == "" })
}

// writePrompts has files hold req's system prompts and settings. They stay for the next process that is told the same: Claude reads them when
// it starts.
func (p *Provider) writePrompts(req cli.Request) (files promptFiles, err error) {
	settings, _, owners, err := settingsOf(req)
	if err != nil {
		return promptFiles{}, err
	}
	dir := cmp.Or(p.opts.PromptDir, filepath.Join(os.TempDir(), fmt.Sprintf("ductor-claude-%d", os.Getuid())))
	replace, add := ownPrompts(req)
	if owners {
		files.settings, err = cli.Keep(dir, "settings", ".json", settings)
	}
	if replace != "" && err == nil {
		files.replace, err = cli.Keep(dir, "system", "", replace)
	}
	if add != "" && err == nil {
		files.add, err = cli.Keep(dir, "append", "", add)
	}
	if err != nil {
		return promptFiles{}, fmt.Errorf("write system prompt: %w", err)
	}
	return files, nil
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

// freshPrompts is a line that has a session which continues follow the system prompts of req. Claude sends those that the session began
// with otherwise, at least since 2.1.332. It returns nil if there is nothing to follow.
func freshPrompts(req cli.Request) []byte {
	if replace, add := ownPrompts(req); req.Resume == "" || replace+add == "" {
		return nil
	}
	return controlLine(initRequest, map[string]any{"subtype": "initialize", "systemPromptSnapshot": false})
}

// named says whether args have flag, or its twin that takes a file.
func named(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == flag || name == flag+"-file"
	})
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
