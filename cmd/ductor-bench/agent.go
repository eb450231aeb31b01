package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ductor/internal/sim/agent"
)

// Events whose times the scripted agent records.
const (
	wroteText  = "text"
	wroteAsk   = "ask"
	readAnswer = "answer"
)

// stampsFile is the name of the file in which the scripted agent records its stamps. The file is in the directory of
// the agent's program.
const stampsFile = "stamps"

// stamp is the time of an event in an agent: just before the agent writes something, or just after it has read
// something.
type stamp struct {
	at    time.Time
	pid   int
	event string
}

// runAgent runs the scripted agent and records its events. The agent's program is a symbolic link to the benchmark's
// own program.
func runAgent() int {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[0]), stampsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "open the stamps:", err)
		return 1
	}
	defer f.Close()
	args := append([]string{agent.Claude}, os.Args[1:]...)
	return agent.Main(args, stampedInput{os.Stdin, f}, stampedOutput{os.Stdout, f}, os.Stderr, os.Environ())
}

type stampedOutput struct{ to, stamps io.Writer }

func (s stampedOutput) Write(line []byte) (int, error) {
	var err error
	switch {
	case bytes.Contains(line, []byte(`"text_delta"`)):
		err = record(s.stamps, wroteText)
	case bytes.Contains(line, []byte(`"can_use_tool"`)):
		err = record(s.stamps, wroteAsk)
	}
	if err != nil {
		return 0, err
	}
	return s.to.Write(line)
}

type stampedInput struct {
	from   io.Reader
	stamps io.Writer
}

func (s stampedInput) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if bytes.Contains(p[:n], []byte(`"behavior"`)) {
		if err := record(s.stamps, readAnswer); err != nil {
			return n, err
		}
	}
	return n, err
}

func record(to io.Writer, event string) error {
	_, err := fmt.Fprintf(to, "%d %d %s\n", time.Now().UnixNano(), os.Getpid(), event)
	return err
}

// stamps returns the recorded events of one kind, oldest first.
func (s *setup) stamps(event string) (found []stamp, err error) {
	b, err := os.ReadFile(filepath.Join(s.dir, "bin", stampsFile))
	if err != nil {
		return nil, fmt.Errorf("read the stamps: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[2] != event {
			continue
		}
		at, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the stamps: %w", err)
		}
		pid, err := strconv.Atoi(f[1])
		if err != nil {
			return nil, fmt.Errorf("read the stamps: %w", err)
		}
		found = append(found, stamp{time.Unix(0, at), pid, event})
	}
	return found, nil
}
