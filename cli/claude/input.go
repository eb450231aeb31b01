package claude

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"ductor/cli"
)

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
	if req.Prompt != "" {
		content = append(content, map[string]any{"type": "text", "text": promptText(req.Prompt)})
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

// checkPrompt refuses a request that has nothing to ask, and one that JSON could only carry altered.
func checkPrompt(req cli.Request) error {
	if !utf8.ValidString(req.Prompt) {
		return cli.Failf(cli.Refused, agent, "the message is no valid text (UTF-8)")
	}
	if strings.TrimSpace(req.Prompt) == "" && len(req.Images) == 0 {
		return cli.Failf(cli.Refused, agent, "the message is empty")
	}
	return nil
}
