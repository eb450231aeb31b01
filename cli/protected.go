package cli

import (
	"encoding/json"
	"strings"
)

// pathBytes is how long a text may be that could be a path.
const pathBytes = 4096

// Names says whether any text of a tool's input is the path of one of files, or of what lies below one; see Touches. What
// a command does with its words is not read.
func Names(files []string, dir string, input json.RawMessage) bool {
	var v any
	return len(files) > 0 && json.Unmarshal(input, &v) == nil && names(files, dir, v) // what cannot be read names nothing
}

// NamesOne says whether a text is such a path.
func NamesOne(files []string, dir, text string) bool {
	return text != "" && len(text) <= pathBytes && !strings.Contains(text, "\n") && Touches(files, dir, strings.TrimPrefix(text, "file://"))
}

func names(files []string, dir string, v any) bool {
	switch v := v.(type) {
	case string:
		return NamesOne(files, dir, v)
	case []any:
		for _, e := range v {
			if names(files, dir, e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if names(files, dir, e) {
				return true
			}
		}
	}
	return false
}
