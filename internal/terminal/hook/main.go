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

// Process is the process of one hook.
type Process struct {
	Args        []string // agent, StateFlag, state directory, then further arguments from the settings of the CLI
	In          io.Reader
	Out         io.Writer
	Within      bool          // ductor itself runs the agent, and therefore does not need the hook
	RestartWait time.Duration // how long to wait for a restart of ductor, if ductor has promised an answer
	ReplyWait   time.Duration // how long to wait for the first reply of ductor, in which it can promise an answer
	// StateFlag and ThenFlag are copies of the constants in package terminal.
	StateFlag, ThenFlag string
}

// Main runs the hook and returns its exit code. The exit code is always 0: for the CLI, a hook of ductor never fails.
func Main(p Process) int {
	agent, state, former, payload := p.splitArgs()
	if former != nil {
		runFormer(former, payload)
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
	if output := p.send(state, Message{Agent: agent, Event: event, ID: rand.Text()}); len(output) > 0 {
		fmt.Fprintf(p.Out, "%s\n", output)
	}
	return 0
}

// splitArgs splits the arguments. Its results are the agent, the path of the state directory, the command line of the
// user's own hook (nil if there is none), and the event. The event is "" if the CLI passes it on standard input, as most
// CLIs do.
func (p Process) splitArgs() (agent, state string, former []string, payload string) {
	if len(p.Args) < 3 || p.Args[1] != p.StateFlag {
		return "", "", nil, ""
	}
	agent, state = p.Args[0], p.Args[2]
	rest := p.Args[3:]
	if i := len(rest) - 1; agent == "codex" && i >= 0 {
		payload, rest = rest[i], rest[:i]
	}
	if i := slices.Index(rest, p.ThenFlag); i >= 0 && i+1 < len(rest) {
		former = rest[i+1:]
	}
	return agent, state, former, payload
}

// runFormer starts the user's own program, which was configured before ductor's hook. It does not wait for the end of
// the program.
func runFormer(words []string, payload string) {
	cmd := exec.Command(words[0], append(slices.Clone(words[1:]), payload)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if cmd.Start() == nil {
		_ = cmd.Process.Release() // free the resources without waiting for the program
	}
}

// retryInterval is how often a hook checks whether ductor runs again.
const retryInterval = 200 * time.Millisecond

// send sends a message to ductor, and returns the answer for the CLI, or nil for none. If ductor exits after it
// promised an answer, send repeats the message to the next ductor process.
func (p Process) send(state string, m Message) json.RawMessage {
	m.Event = bytes.TrimSpace(m.Event)
	m.Dir, _ = os.Getwd()
	began := time.Now()
	output, result := p.sendOnce(state, m)
	for gone := time.Now(); result == lost || !m.Since.IsZero() &&
		result == noPromise; output, result = p.sendOnce(state, m) {
		if result == lost {
			m.Since, gone = began, time.Now()
		}
		if time.Since(gone) >= p.RestartWait {
			return nil
		}
		time.Sleep(retryInterval)
	}
	return output
}

// outcome is the result of one attempt to send a message.
type outcome int

const (
	noPromise outcome = iota // ductor does not run, or sent no first reply
	lost                     // ductor promised an answer, but exited before it sent the answer
	answered                 // ductor has sent its final answer, which may be empty
)

func (p Process) sendOnce(state string, m Message) (json.RawMessage, outcome) {
	conn, err := dial(state)
	if err != nil {
		return nil, noPromise
	}
	defer conn.Close()
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, answered // the CLI's event is not JSON, so a retry would fail, too
	}
	err = conn.SetDeadline(time.Now().Add(p.ReplyWait))
	if err == nil {
		_, err = conn.Write(append(raw, '\n'))
	}
	if err != nil {
		return nil, noPromise
	}
	in := bufio.NewReader(conn)
	first, err := readAnswer(in)
	switch {
	case err != nil:
		return nil, noPromise
	case !first.Wait || conn.SetDeadline(time.Time{}) != nil:
		return first.Output, answered
	}
	second, err := readAnswer(in)
	if err != nil {
		return nil, lost
	}
	return second.Output, answered
}

func readAnswer(in *bufio.Reader) (a Answer, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	err = json.Unmarshal(line, &a)
	return a, err
}
