package clitest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// fakeVar makes the test binary play the agent of this file.
const fakeVar = "CLITEST_FAKE_HOME"

// line is the fake's protocol, both ways: a prompt or an interrupt in, an event out.
type line struct {
	Kind   string `json:"kind"`
	Text   string `json:"text,omitempty"`
	ID     string `json:"id,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

func say(l line) {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(b))
}

// runFake is an agent that takes prompts until its input ends, and obeys the script language.
func runFake(home string) int {
	prompts, interrupts := make(chan line), make(chan struct{}, 1)
	go func() {
		defer close(prompts)
		in := bufio.NewReader(os.Stdin)
		for {
			raw, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var l line
			if json.Unmarshal(raw, &l) != nil {
				os.Exit(9)
			}
			if l.Kind == "interrupt" {
				interrupts <- struct{}{}
			} else {
				prompts <- l
			}
		}
	}()
	for p := range prompts {
		playPrompt(home, p, interrupts)
	}
	return 0
}

var directive = regexp.MustCompile(`\[\[([a-z-]+) ?("(?:[^"\\]|\\.)*"|[^\]]*)( [^\]]*)?\]\]`)

func playPrompt(home string, p line, interrupts chan struct{}) {
	id := p.ID
	if id == "" {
		id = uuid.NewString()
	}
	history := filepath.Join(home, id)
	before, _ := os.ReadFile(history) // none in a new session
	if err := os.WriteFile(history, append(before, p.Text+"\n"...), 0o600); err != nil {
		panic(err)
	}
	say(line{Kind: "session", ID: id})
	for i, d := range directive.FindAllStringSubmatch(p.Text, -1) {
		arg, err := strconv.Unquote(d[2])
		if err != nil {
			arg = d[2]
		}
		if d[3] != "" && d[1] == "text" {
			slowly(strconv.Itoa(i), arg)
			continue
		}
		if !step(strconv.Itoa(i), d[1], arg, string(before), interrupts) {
			return
		}
	}
	say(line{Kind: "done"})
}

// slowly says text in small pieces.
func slowly(key, text string) {
	for rest := text; rest != ""; rest = rest[min(len(rest), 4):] {
		time.Sleep(4 * time.Millisecond)
		say(line{Kind: "text", ID: key, Text: rest[:min(len(rest), 4)]})
	}
	say(line{Kind: "whole", ID: key, Text: text})
}

// step does one directive; false when that ended the turn.
func step(key, name, arg, before string, interrupts chan struct{}) bool {
	switch name {
	case "text":
		half := len(arg) / 2
		say(line{Kind: "text", ID: key, Text: strings.ToValidUTF8(arg[:half], "")})
		say(line{Kind: "whole", ID: key, Text: arg})
	case "think":
		say(line{Kind: "think", Text: arg})
	case "history":
		say(line{Kind: "text", ID: key, Text: before})
	case "longline":
		say(line{Kind: "nothing", Text: strings.Repeat("long ", 300_000)})
	case "error":
		say(line{Kind: "done", Failed: true, Text: "model error " + arg})
		return false
	case "tool":
		return tool(key, arg, interrupts)
	case "hang":
		<-interrupts
		say(line{Kind: "done"})
		return false
	case "crash":
		fmt.Fprintln(os.Stderr, "scripted crash")
		os.Exit(3)
	case "silent":
		os.Exit(0)
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
	}
	return true
}

// tool runs a command in a session of its own and, unlike a good agent, leaves it running when interrupted.
func tool(key, command string, interrupts chan struct{}) bool {
	say(line{Kind: "tool", ID: key, Text: command})
	var out strings.Builder
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = 50 * time.Millisecond
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-interrupts:
		say(line{Kind: "done"})
		return false
	case err := <-ended:
		say(line{Kind: "toolend", ID: key, Text: out.String(), Failed: err != nil && cmd.ProcessState.ExitCode() != 0})
		return true
	}
}
