// Package stored lists the sessions in an agent's own files, for the dialects: each dialect defines where the files are
// and how to parse a line.
//
// It reads limited parts of a limited number of files, through ductor-runner if this host does not see them. It changes
// nothing.
package stored

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/stored/files"
)

// Files selects the files that contain sessions; List sets its Most.
type Files = files.Query

// Line is a parsed line of a file. Missing values are empty.
type Line struct {
	ID     cli.AgentSessionID
	Dir    string
	Prompt string // of the user
	Hidden bool   // the file is not a session that users resume, but for example a sub-agent's
}

const (
	filesMost   = 15 // of one agent
	promptBytes = 400
	wait        = 5 * time.Second
)

// idShape prevents an ID from being something else in an argument or a path.
var idShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// List lists the sessions of agent in a directory, the newest first. env is the environment of the agent's processes,
// and launcher starts them. read parses a line, which may be cut off or foreign.
func List(ctx context.Context, agent cli.Agent, launcher cli.Launcher, env []string, dir string, q Files,
	read func(line []byte) Line) ([]cli.StoredSession, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		fmt.Errorf("the files of %s's sessions were not read in %s", agent, wait))
	defer cancel()
	q.Most = filesMost
	found, err := find(ctx, launcher, env, q)
	var all []cli.StoredSession
	known := map[cli.AgentSessionID]bool{} // a session may have several files
	for _, f := range found {
		s := cli.StoredSession{Agent: agent, Used: f.Used}
		if merge(&s, f, read) && s.Dir == dir && s.First != "" && idShape().MatchString(string(s.ID)) && !known[s.ID] {
			known[s.ID] = true
			all = append(all, s)
		}
	}
	if err != nil && len(all) == 0 {
		return nil, fmt.Errorf("list the sessions of %s: %w", agent, err)
	}
	return all, nil
}

func find(ctx context.Context, launcher cli.Launcher, env []string, q Files) ([]files.File, error) {
	remote, ok := launcher.(cli.Helper)
	if !ok {
		return files.Find(ctx, env, q)
	}
	query, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	raw, err := remote.Help(ctx, env, files.Verb, string(query))
	if err != nil {
		return nil, err
	}
	var found []files.File
	return found, json.Unmarshal(raw, &found)
}

// merge adds the lines of a file to s; it returns false if the file is hidden.
func merge(s *cli.StoredSession, f files.File, read func([]byte) Line) bool {
	for _, part := range [][]byte{f.Head, f.Tail} {
		for text := range bytes.Lines(part) {
			l := read(text)
			if l.Hidden {
				return false
			}
			if s.ID == "" {
				s.ID = l.ID
			}
			if s.Dir == "" {
				s.Dir = l.Dir
			}
			prompt := cli.OneLine(l.Prompt, promptBytes)
			if prompt == "" { // or only a picture
				continue
			}
			s.Last = prompt
			if s.First == "" {
				s.First = prompt
			}
		}
	}
	return true
}

// HasDir returns the JSON text of dir as a working directory, for Files.Has.
func HasDir(dir string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // agents do not escape < and &
	_ = e.Encode(dir)      // a text can always be encoded
	return `"cwd":` + string(bytes.TrimSpace(out.Bytes()))
}
