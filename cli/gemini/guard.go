package gemini

import (
	"bufio"
	"bytes"
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

	"ductor/cli"
)

// guard keeps Gemini from destroying a session that is gone on with. Version 0.61, before it reads the session, begins
// another file for it, session-MINUTE-SHORTID.jsonl. In the minute in which the session began, that is the session's
// own file, and what was said is struck out of it; in a later minute, the next start of another session takes the
// new file for damaged, and deletes all files of that short id. Gemini finds sessions by what is in the files, so the
// session's file is given a name with another short id, and only what Gemini began is deleted.
func (p *Provider) guard(req cli.Request) error {
	id := string(req.Resume)
	const short = 8
	if len(id) < short || strings.ContainsAny(id, `/\*?[`) {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(home(p.env(req)), "tmp", "*", "chats", "session-*-"+id[:short]+".jsonl"))
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
// those that set what surrounds it.
func holdsSession(path, id string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
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
