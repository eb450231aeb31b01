package real

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/internal/sim/agent"
	"ductor/internal/sim/script"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// agentNames contains the names of the scripted agents. The last agent is defined in the configuration's [agents.acp].
var agentNames = [...]string{agent.Claude, agent.Codex, agent.Gemini, agent.Copilot, acpAgent}

const acpAgent = "gem"

// agentLog is the name of the log of actions. Both the agents and the commands that they run write to the log.
const agentLog = "agents.log"

// beAgent checks whether this process was started under the name of an agent. If so, it runs the scripted agent and
// exits. It logs which prompts were started, which files were written, and which turns succeeded.
func beAgent() {
	name := filepath.Base(os.Args[0])
	if name == acpAgent || !slices.Contains(agentNames[:], name) {
		return
	}
	log := filepath.Join(filepath.Dir(filepath.Dir(os.Args[0])), "home", agentLog)
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	program := agent.Program{
		Args: append([]string{name}, os.Args[1:]...), Env: os.Environ(), Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr, Signals: signals,
		Heard: func(prompt string) { logTokens(log, judge.Got, prompt) },
		Ended: func(prompt string) { logTokens(log, judge.Done, prompt) },
		Wrote: func(_, text string) {
			if name := strings.TrimSpace(text); tokenPattern.MatchString(tokenOf(name)) {
				logLine(log, judge.Effect, name)
			}
		},
	}
	syscall.Exit(program.Run(context.Background())) // with the race detector, os.Exit takes a second
}

// logTokens writes a line to the log for each token in a prompt.
func logTokens(path string, what judge.What, prompt string) {
	for _, word := range strings.Fields(script.Parse(prompt).Plain) {
		if tokenPattern.MatchString(word) {
			logLine(path, what, word)
		}
	}
}

var tokenPattern = regexp.MustCompile(`^p\d+$`)

// tokenOf returns the token of a prompt from the name of one of its effects, for example p1 for p1.2.
func tokenOf(effect string) string {
	token, _, _ := strings.Cut(effect, ".")
	return token
}

// logLine appends a line to a log. Other processes may write to the same log at the same time.
func logLine(path string, what judge.What, name string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s %d %d %s\n", what, name, time.Now().UnixNano(), os.Getpid(), filepath.Base(os.Args[0]))
}

// logCommand returns a shell command that writes the name of an effect to the log.
func logCommand(path, effect string) string {
	return fmt.Sprintf("echo %s %s $(date +%%s%%N) $PPID >> %s", judge.Effect, effect, path)
}

// agentEvents returns the events in the log of the agents. Lines of shell commands do not contain the name of the
// agent.
func (o *ordeal) agentEvents() (all []judge.AgentEvent) {
	raw, _ := os.ReadFile(o.agentLog())
	for line := range strings.Lines(string(raw)) {
		var what, name, pid, agent string
		var ns int64
		if n, _ := fmt.Sscan(line, &what, &name, &ns, &pid, &agent); n < 4 {
			continue // the process was killed while it wrote the line
		}
		all = append(all, judge.AgentEvent{
			At: time.Unix(0, ns), Agent: agent, Run: pid, Token: scenario.Token(tokenOf(name)), What: judge.What(what),
			Name: name,
		})
	}
	return all
}
