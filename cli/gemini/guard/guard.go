// Package guard protects the files of a session while Gemini resumes the session. It runs where Gemini's files are: in
// ductor on this machine, and in ductor-runner in a container. It does not interpret the conversation, and imports no
// other package of ductor.
//
// Gemini 0.61 creates a file named session-MINUTE-SHORTID.jsonl before it reads a session. This can destroy the session
// in two cases:
//   - Gemini resumes the session in the minute in which the session began. The session's own file then has this name,
//     and Gemini empties it.
//   - Gemini resumes the session later. When Gemini next starts with another session, it considers the new file
//     damaged, and deletes all files with the same SHORTID.
//
// Gemini finds sessions by the contents of files, not by their names. So Protect changes the SHORTID in the name of the
// session's file. Gemini then deletes only the file that it created. A setting that disables Gemini's clean-up would
// prevent only the second case.
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

// Verb is the first argument with which ductor-runner runs Main. The next argument is the session's ID.
const Verb = "guard-gemini"

// Main protects the session whose ID is in args. It finds Gemini's data directory through the environment. It writes a
// line of JSON to out, which contains an error if Main failed, and returns the exit code.
func Main(args []string, out io.Writer) int {
	var answer struct {
		Error string `json:"error,omitempty"`
	}
	if len(args) != 1 {
		answer.Error = "want one argument: a session"
	} else if err := Protect(filepath.Join(cmp.Or(os.Getenv("GEMINI_CLI_HOME"), os.Getenv("HOME")), ".gemini"),
		args[0]); err != nil {
		answer.Error = err.Error()
	}
	if json.NewEncoder(out).Encode(answer) != nil || answer.Error != "" {
		return 1
	}
	return 0
}

const short = 8 // length of the part of a session's ID that file names contain

// Protect protects a session that Gemini is about to resume. dir is Gemini's data directory. If the session does not
// exist, Protect returns nil.
func Protect(dir, id string) error {
	if len(id) < short || strings.ContainsAny(id, `/\*?[`) {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(escaped(dir), "tmp", "*", "chats", "session-*-"+id[:short]+".jsonl"))
	if err != nil {
		return fmt.Errorf("find a session of Gemini: %w", err)
	}
	sum := sha256.Sum256([]byte("ductor " + id))
	for _, file := range files {
		holds, err := holdsSession(file, id)
		if err == nil && holds {
			err = moveAside(file, strings.TrimSuffix(file, id[:short]+".jsonl")+hex.EncodeToString(sum[:short/2])+
				".jsonl")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("guard a session of Gemini's: %w", err)
		}
	}
	return nil
}

// escaped returns path with the special characters of filepath.Glob patterns escaped.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// moveAside renames a file, unless the new name exists.
func moveAside(from, to string) error {
	if err := os.Link(from, to); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return os.Remove(from)
}

// holdsSession reports whether a file contains messages of a session, besides a header and settings. It does not block
// on a named pipe that an agent may have created.
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
