package claude

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// promptFiles contains the paths of files with system prompts, and with the settings from the configured extra
// arguments. These texts are in files because every user of the machine can read command lines. An empty path means
// that there is no such text.
type promptFiles struct{ replace, add, settings string }

// paths returns the paths that are not empty.
func (f promptFiles) paths() []string {
	return slices.DeleteFunc([]string{f.replace, f.add, f.settings}, func(path string) bool { return path == "" })
}

// writePrompts writes the system prompts and settings for req to files, which Claude reads at its start. The files stay
// for later processes with the same prompts.
func (p *Provider) writePrompts(req cli.Request) (files promptFiles, err error) {
	settings, _, configured, err := settingsOf(req)
	if err != nil {
		return promptFiles{}, err
	}
	dir := cmp.Or(p.opts.PromptDir, filepath.Join(os.TempDir(), fmt.Sprintf("ductor-claude-%d", os.Getuid())))
	replace, add := ownPrompts(req)
	if configured {
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

// ownPrompts returns the system prompts of req. It omits a prompt that the configured extra arguments replace: Claude
// does not start if it gets a prompt twice, and the configuration has priority.
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

// freshPrompts returns a line that makes a resumed session use the system prompts of req. It returns nil if req has no
// system prompts, or starts a new session. Without this line, Claude 2.1.332 continues to use the session's first
// system prompts.
func freshPrompts(req cli.Request) []byte {
	if replace, add := ownPrompts(req); req.Resume == "" || replace+add == "" {
		return nil
	}
	return controlLine(initRequest, map[string]any{"subtype": "initialize", "systemPromptSnapshot": false})
}

// named reports whether args contain the flag itself, or the variant of the flag that reads a file.
func named(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == flag || name == flag+"-file"
	})
}

// maxImage is the API's size limit for a picture, in bytes before base64 encoding.
const maxImage = 5 << 20

// promptText prevents Claude from treating a prompt as a command: it puts a space before a leading slash.
func promptText(prompt string) string {
	if strings.HasPrefix(prompt, "/") {
		return " " + prompt
	}
	return prompt
}

// promptOf returns the text of the message that ductor sends to Claude for req.
func promptOf(req cli.Request) string {
	switch req.Task {
	case cli.TaskCompact:
		return strings.TrimSpace("/compact " + req.Prompt)
	case cli.TaskCommand:
		return req.Prompt
	}
	return promptText(req.Prompt)
}

// hasMention reports whether Claude might interpret a part of the prompt as the name of a file. If so, userLine puts
// the block cli.EndOfMessage after the prompt; see cli.HasMention.
func hasMention(req cli.Request) bool {
	return req.Task == cli.TaskPrompt && cli.HasMention(req.Prompt)
}

// userLine returns the prompt and the images of req as one line of stream-json input. If id is not empty, Claude
// repeats the ID after it has accepted the message.
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
	if hasMention(req) {
		content = append(content, map[string]any{"type": "text", "text": cli.EndOfMessage})
	}
	l := map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": content}}
	if id != "" {
		l["uuid"] = id
	}
	return jsonLine(l), nil
}

func imageBlock(image cli.Image) (map[string]any, error) {
	data, err := image.Base64(maxImage)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	return map[string]any{"type": "image", "source": map[string]any{
		"type": "base64", "media_type": image.MIME, "data": data,
	}}, nil
}
