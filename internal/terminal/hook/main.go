package hook

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// Process is one run of a hook.
type Process struct {
	Args        []string // the agent, then the flag and the state directory, and what else ductor's hooks were written with
	In          io.Reader
	Out         io.Writer
	Within      bool          // an agent that ductor runs started it: ductor knows already
	RestartWait time.Duration // after which it no longer waits for a ductor that was to answer and is gone
	// StateFlag and ThenFlag are those of package terminal.
	StateFlag, ThenFlag string
}

// ductorWait is how long a ductor that is there may take to say whether it will answer.
const ductorWait = time.Second

// Main runs the hook. It always gives 0: no CLI is to stop because of ductor.
func Main(p Process) int {
	agent, state, then, payload := p.parse()
	if then != nil {
		runFormer(then, payload)
	}
	if p.Within || state == "" {
		return 0
	}
	event := []byte(payload)
	if payload == "" {
		var err error
		if event, err = io.ReadAll(io.LimitReader(p.In, MostBytes)); err != nil {
			return 0
		}
	}
	if output := p.ask(state, Message{Agent: agent, Event: event, ID: rand.Text()}); len(output) > 0 {
		fmt.Fprintf(p.Out, "%s\n", output)
	}
	return 0
}

// parse takes the arguments apart. payload is what a CLI says in an argument instead of on standard input.
func (p Process) parse() (agent, state string, then []string, payload string) {
	if len(p.Args) < 3 || p.Args[1] != p.StateFlag {
		return "", "", nil, ""
	}
	agent, state = p.Args[0], p.Args[2]
	rest := p.Args[3:]
	if i := len(rest) - 1; agent == "codex" && i >= 0 {
		payload, rest = rest[i], rest[:i]
	}
	if i := slices.Index(rest, p.ThenFlag); i >= 0 && i+1 < len(rest) {
		then = rest[i+1:]
	}
	return agent, state, then, payload
}

// runFormer starts the program that the CLI told before ductor's hook was there. It outlives the hook.
func runFormer(words []string, payload string) {
	cmd := exec.Command(words[0], append(slices.Clone(words[1:]), payload)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if cmd.Start() == nil {
		_ = cmd.Process.Release() // its end is of no interest here
	}
}

// askAgain is how often a hook looks whether ductor is back.
const askAgain = 200 * time.Millisecond

// ask sends a message to ductor and returns its answer for the CLI, or nil if there is none. If ductor ends before it answers, ask sends the
// message to the next one.
func (p Process) ask(state string, m Message) json.RawMessage {
	m.Event = bytes.TrimSpace(m.Event)
	m.Dir, _ = os.Getwd()
	began := time.Now()
	output, heard := tell(state, m)
	for gone := time.Now(); heard == lost || !m.Since.IsZero() && heard == unheard; output, heard = tell(state, m) {
		if heard == lost {
			m.Since, gone = began, time.Now()
		}
		if time.Since(gone) >= p.RestartWait {
			return nil
		}
		time.Sleep(askAgain)
	}
	return output
}

// hearing is how far ductor came with a message.
type hearing int

const (
	unheard  hearing = iota // it did not say whether it will answer
	lost                    // it was to answer, and is gone
	answered                // there is nothing more to come
)

func tell(state string, m Message) (json.RawMessage, hearing) {
	conn, err := dial(state)
	if err != nil {
		return nil, unheard
	}
	defer conn.Close()
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, answered // what a CLI says is no JSON
	}
	err = conn.SetDeadline(time.Now().Add(ductorWait))
	if err == nil {
		_, err = conn.Write(append(raw, '\n'))
	}
	if err != nil {
		return nil, unheard
	}
	in := bufio.NewReader(conn)
	first, err := receive(in)
	switch {
	case err != nil:
		return nil, unheard
	case !first.Wait || conn.SetDeadline(time.Time{}) != nil:
		return first.Output, answered
	}
	second, err := receive(in)
	if err != nil {
		return nil, lost
	}
	return second.Output, answered // without one the CLI asks at its terminal
}

func receive(in *bufio.Reader) (a Answer, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	err = json.Unmarshal(line, &a)
	return a, err
}
