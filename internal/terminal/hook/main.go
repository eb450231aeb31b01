package hook

import (
	"bufio"
	"bytes"
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
	Args   []string // the agent, then the flag and the state directory, and what else ductor's hooks were written with
	In     io.Reader
	Out    io.Writer
	Within bool // an agent that ductor runs started it: ductor knows already
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
	if output := ask(state, Message{Agent: agent, Event: event}); len(output) > 0 {
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

// ask tells ductor, and gives its answer to the CLI; nothing where none answers.
func ask(state string, m Message) json.RawMessage {
	conn, err := dial(state)
	if err != nil {
		return nil
	}
	defer conn.Close()
	m.Event = bytes.TrimSpace(m.Event)
	m.Dir, _ = os.Getwd()
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	err = conn.SetDeadline(time.Now().Add(ductorWait))
	if err == nil {
		_, err = conn.Write(append(raw, '\n'))
	}
	if err != nil {
		return nil
	}
	in := bufio.NewReader(conn)
	first, err := receive(in)
	if err != nil || !first.Wait || conn.SetDeadline(time.Time{}) != nil {
		return first.Output
	}
	second, _ := receive(in) // without an answer the CLI asks at its terminal
	return second.Output
}

func receive(in *bufio.Reader) (a Answer, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	err = json.Unmarshal(line, &a)
	return a, err
}
