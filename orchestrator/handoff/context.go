package handoff

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"ductor/cli"
	"ductor/internal/rooted"
)

// Limits of the context files in bytes.
const (
	mostOfFile  = 32 << 10
	mostOfFiles = 96 << 10
)

// LeftOut is a context file that could not be added to the prompt, with the reason.
type LeftOut struct {
	File string
	Err  error
}

// File formats the content of a text file for a prompt.
func File(path string, content []byte) string {
	return fmt.Sprintf("<file path=%q>\n%s\n</file>\n", path, strings.TrimRight(string(content), "\n"))
}

// Context formats the context files of a directory, to be put before the first prompt of a session in an environment.
// Without readable files, the text is "". Context also returns the files that are unreadable or too long.
func Context(dir string, in cli.Sandbox, files []string) (text string, omitted []LeftOut) {
	read := rooted.Read
	// An agent in a sandbox may have replaced the directory by a link to another directory of this host.
	if in != "" {
		read = rooted.ReadReal
	}
	var b strings.Builder
	for _, name := range files {
		var content []byte
		err := rooted.CheckVisible(name)
		if err == nil {
			content, err = read(dir, name, min(mostOfFile, max(int64(mostOfFiles-b.Len()), 0)))
		}
		if err == nil && !utf8.Valid(content) {
			err = errors.New("it is not text")
		}
		if err != nil {
			omitted = append(omitted, LeftOut{name, plain(err)})
			continue
		}
		b.WriteString(File(name, content))
	}
	if b.Len() == 0 {
		return "", omitted
	}
	return "<project-files>\nEvery session in this project begins with these files of it.\n" + b.String() +
		"</project-files>\n\n", omitted
}

// plain converts an error about a file to an error whose text users understand.
func plain(err error) error {
	var refused *rooted.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Refusal {
	case rooted.NotThere, rooted.NoFolder:
		return errors.New("it is not there")
	case rooted.Hidden:
		return errors.New("it is hidden")
	case rooted.Link:
		return errors.New("it is a link")
	case rooted.TooLarge:
		return fmt.Errorf("it is longer than %d KB, or all of them are longer than %d KB", mostOfFile>>10,
			mostOfFiles>>10)
	case rooted.Special, rooted.Directory:
		return errors.New("it is not a regular file")
	case rooted.Empty:
		return errors.New("it is empty")
	}
	return err
}
