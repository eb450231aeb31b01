// Package stored lists the sessions that an agent has stored in files of its own. The packages of the agents define
// where the files are and how to parse a line.
//
// The package reads only parts of a limited number of files. If the files are not on this host, ductor-runner reads
// them. The package changes no files.
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

// Files selects the files that contain sessions. Source.List sets the field Most.
type Files = files.Query

// Line contains the values in one line of a file. A value that the line does not contain is empty.
type Line struct {
	ID     cli.AgentSessionID
	Dir    string
	Prompt string // the user's prompt
	Hidden bool   // whether users cannot resume the session, for example because a sub-agent created it
}

const (
	filesMost   = 15 // maximum number of files per agent
	promptBytes = 400
	wait        = 5 * time.Second
)

// idShape matches valid session IDs. Any other text could have a special meaning in an argument or a path.
var idShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// Source describes how to find an agent's sessions.
type Source struct {
	Agent    cli.Agent
	Launcher cli.Launcher
	Env      []string // environment of the agent's processes
	Files    Files
	Parse    func(line []byte) Line // must accept truncated and unknown lines
}

// List returns the sessions with the working directory dir, the newest first.
func (s Source) List(ctx context.Context, dir string) ([]cli.StoredSession, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		fmt.Errorf("the files of %s's sessions were not read in %s", s.Agent, wait))
	defer cancel()
	found, err := s.find(ctx)
	var all []cli.StoredSession
	known := map[cli.AgentSessionID]bool{} // a session may have several files
	for _, f := range found {
		one := cli.StoredSession{Agent: s.Agent, Used: f.Used}
		if !merge(&one, f, s.Parse) || one.Dir != dir || one.First == "" || known[one.ID] ||
			!idShape().MatchString(string(one.ID)) {
			continue
		}
		known[one.ID] = true
		all = append(all, one)
	}
	if err != nil && len(all) == 0 {
		return nil, fmt.Errorf("list the sessions of %s: %w", s.Agent, err)
	}
	return all, nil
}

// find reads the files. If the files are not on this host, ductor-runner reads them.
func (s Source) find(ctx context.Context) ([]files.File, error) {
	q := s.Files
	q.Most = filesMost
	remote, ok := s.Launcher.(cli.Helper)
	if !ok {
		return files.Find(ctx, s.Env, q)
	}
	query, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	raw, err := remote.Help(ctx, s.Env, files.Verb, string(query))
	if err != nil {
		return nil, err
	}
	var found []files.File
	return found, json.Unmarshal(raw, &found)
}

// merge adds the values in the file f to the session s. It returns false if users cannot resume the session.
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
			if prompt == "" { // the line contains no prompt, or only a picture
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

// HasDir returns the JSON field "cwd" with the value dir. As the value of Files.Has, it selects the session files of
// this directory.
func HasDir(dir string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // agents do not escape < and &
	_ = e.Encode(dir)      // a string can always be encoded
	return `"cwd":` + string(bytes.TrimSpace(out.Bytes()))
}
