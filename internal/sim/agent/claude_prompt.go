package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// promptOption is an option for a system prompt, given as a text or as a file. Like Claude Code, the scripted agent
// reads the file when it starts, but it does not use the content.
type promptOption struct{ flag, text, file string }

// wrong returns Claude Code's error message for an invalid option, or "". name is the name of the option in the
// message.
func (o promptOption) wrong(name string) string {
	if o.file == "" {
		return ""
	}
	if o.text != "" {
		return "Error: Cannot use both " + o.flag + " and " + o.flag + "-file. Please use only one."
	}
	path, err := filepath.Abs(o.file)
	if err != nil {
		path = o.file
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "Error: " + name + " file not found: " + path
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(path + " is not a regular file")
	}
	if err == nil {
		_, err = os.ReadFile(path)
	}
	if err != nil {
		return "Error reading " + strings.ToLower(name) + " file: " + err.Error()
	}
	return ""
}

// wrongPrompts returns the error message for the first invalid system prompt, or "".
func (a claudeArgs) wrongPrompts() string {
	if msg := a.system.wrong("System prompt"); msg != "" {
		return msg
	}
	return a.appended.wrong("Append system prompt")
}
