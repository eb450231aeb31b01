// Package guard keeps Gemini from destroying a session that is resumed. It works on the files that Gemini keeps,
// so it runs where they are: in ductor on this machine, and in a container as a part of ductor-runner. It is NOT
// about what is in a session, and imports nothing of ours.
//
// Version 0.61, before it reads the session, begins another file for it, session-MINUTE-SHORTID.jsonl. In the minute in
// which the session began, that is the session's own file, and what was said is struck out of it; in a later minute,
// the next start of another session takes the new file for damaged, and deletes all files of that short id. Gemini
// finds sessions by what is in the files, so the session's file is given a name with another short id, and only what
// Gemini began is deleted. To switch its clean-up off by a setting would help against the second only.
package guard

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Verb is the first argument that makes ductor-runner a guard. After it comes a session's id.
const Verb = "guard-gemini"

// Main protects a session of the home that the environment names, prints a line of JSON with the error if there is
// one, and returns an exit code.
func Main(args []string, out io.Writer) int {
	var answer struct {
		Error string `json:"error,omitempty"`
	}
	if len(args) != 1 {
		answer.Error = "one session is to be named"
	} else if err := Protect(filepath.Join(cmp.Or(os.Getenv("GEMINI_CLI_HOME"), os.Getenv("HOME")), ".gemini"), args[0]); err != nil {
		answer.Error = err.Error()
	}
	if json.NewEncoder(out).Encode(answer) != nil || answer.Error != "" {
		return 1
	}
	return 0
}

const short = 8 // of an id that is in the name of a file

// Protect has a session survive that Gemini is about to resume. dir is where Gemini keeps what it keeps. A session
// that is not there is no error.
func Protect(dir, id string) error {
	if len(id) < short || strings.ContainsAny(id, `/\*?[`) {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(escaped(dir), "tmp", "*", "chats", "session-*-"+id[:short]+".jsonl"))
	if err != nil {
		return fmt.Errorf("look for a session of Gemini's: %w", err)
	}
	sum := sha256.Sum256([]byte("ductor " + id))
	for _, file := range files {
		holds, err := holdsSession(file, id)
		if err == nil && holds {
			err = moveAside(file, strings.TrimSuffix(file, id[:short]+".jsonl")+hex.EncodeToString(sum[:short/2])+".jsonl")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("guard a session of Gemini's: %w", err)
		}
	}
	return nil
}

// escaped is a path in which nothing is a pattern.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// moveAside renames a file, unless there is one of that name.
func moveAside(from, to string) error {
	if err := os.Link(from, to); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return os.Remove(from)
}

// holdsSession says whether a file holds something that was said in a session: beyond the lines that begin it and
// those that set what surrounds it. An agent may have put anything there; what is no file is not waited for.
func holdsSession(path, id string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	in := bufio.NewReader(f)
	ours, said := false, false
	for !ours || !said {
		line, err := in.ReadBytes('\n')
		var record struct {
			SessionID string `json:"sessionId"`
			ID        string `json:"id"`
		}
		if json.Unmarshal(bytes.TrimSpace(line), &record) == nil {
			ours = ours || record.SessionID == id
			said = said || record.ID != ""
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
	}
	return ours && said, nil
}
