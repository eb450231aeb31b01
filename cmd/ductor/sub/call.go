package sub

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ductor/internal/config"
)

// call is the command line that starts ductor in a shell. flag is empty, or selects the configuration with -c.
type call struct{ program, flag string }

func (c call) with(subcommand string) string { return c.program + " " + subcommand + c.flag }

// program returns the shortest command line that starts this program from the current directory, with the configuration
// at path.
func program(env config.Environment, path string) call {
	c := call{program: "ductor"}
	if usual, err := config.DefaultPath(env); err != nil || usual != path {
		c.flag = " -c " + word(path)
	}
	self, err := os.Executable()
	if err != nil {
		return c
	}
	if found, err := exec.LookPath("ductor"); err == nil && same(found, self) {
		return c
	}
	dir, err := os.Getwd()
	switch {
	case strings.Contains(self, string(filepath.Separator)+"go-build"): // temporary program of go run
		c.program = "go run ./cmd/ductor"
	case err == nil && filepath.Dir(self) == dir:
		c.program = "./" + word(filepath.Base(self))
	default:
		c.program = word(self)
	}
	return c
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// word returns a text as a word for a shell, in quotes if necessary.
func word(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+:@%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
