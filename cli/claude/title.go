package claude

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"ductor/cli"
)

const maxTitle = 200

// toolTitle is one line that says what a tool call does, for people. Paths inside dir are shown relative.
func toolTitle(name string, input json.RawMessage, dir string) string {
	fields := stringFields(input)
	for _, key := range titleKeys(name) {
		if value := fields[key]; value != "" {
			if strings.HasSuffix(key, "path") {
				value = relative(dir, value)
			}
			return oneLine(value)
		}
	}
	if name == toolQuestion {
		return oneLine(firstQuestion(input))
	}
	return ""
}

// titleKeys are the input fields that name what a tool works on, the most telling first.
func titleKeys(name string) []string {
	switch name {
	case "Bash":
		return []string{"command", "description"}
	case "Task", "Agent":
		return []string{"description", "prompt"}
	case "Grep", "Glob":
		return []string{"pattern", "path"}
	case toolExitPlan:
		return []string{"plan"}
	}
	return []string{"file_path", "notebook_path", "path", "command", "pattern", "query", "url", "skill",
		"subject", "description", "prompt"}
}

// stringFields are the input's fields that are strings. Input that is no object has none.
func stringFields(input json.RawMessage) map[string]string {
	var all map[string]json.RawMessage
	if json.Unmarshal(input, &all) != nil {
		return nil
	}
	fields := make(map[string]string, len(all))
	for key, raw := range all {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			fields[key] = s
		}
	}
	return fields
}

func firstQuestion(input json.RawMessage) string {
	var in struct {
		Questions []struct {
			Question string `json:"question"`
		} `json:"questions"`
	}
	if json.Unmarshal(input, &in) != nil || len(in.Questions) == 0 {
		return ""
	}
	return in.Questions[0].Question
}

func relative(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if dir == "" || err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return path
	}
	return rel
}

// oneLine folds all white space of s into single blanks and shortens it.
func oneLine(s string) string {
	const enough = 4 * maxTitle // so that a huge input is not walked to its end
	return cli.OneLine(strings.ToValidUTF8(cli.Shorten(s, enough), ""), maxTitle)
}
