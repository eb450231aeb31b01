package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// codexVersion is the version of Codex whose protocol was recorded.
const codexVersion = "0.169.0"

// codexFolder is the directory with all threads. In Codex, threads do not belong to a working directory.
const codexFolder = "codex"

func (p *process) codex(args []string) int {
	a, err := parseCodex(args)
	switch {
	case err != nil:
		return p.fail(2, err.Error())
	case a.version:
		fmt.Fprintln(p.stdout, "codex-cli "+codexVersion)
		return 0
	case a.command == "login":
		return p.codexLogin(a.words)
	case a.command == "app-server":
		return p.appServer()
	case a.command == "":
		return p.fail(1, "Error: stdin is not a terminal")
	case a.config["approval_policy"] == "untrusted":
		return p.fail(1, `Error: approval_policy = "untrusted" is no longer supported; remove this setting`)
	}
	if a.dir != "" {
		p.dir = p.abs(a.dir)
		if info, err := os.Stat(p.dir); err != nil || !info.IsDir() {
			return p.fail(1, "Error: No such file or directory (os error 2)")
		}
	}
	return p.codexExec(a)
}

func (p *process) codexLogin(words []string) int {
	if len(words) == 1 && words[0] == "status" {
		return p.fail(0, "API key configured - ***\nAuthentication is checked when you send a request.")
	}
	return p.fail(2, "error: the scripted agent only knows `login status`")
}

// codexExec runs one prompt for `codex exec` and `codex exec resume`.
func (p *process) codexExec(a codexArgs) int {
	thread, prompt, code, ok := p.codexThread(a)
	if !ok {
		return code
	}
	prompt, err := p.codexPrompt(a, prompt)
	if err != nil {
		return p.codexSignal(err)
	}
	if prompt == "" {
		return p.fail(1, "No prompt provided via stdin.")
	}
	if !a.skipGit && !insideGit(p.dir) {
		return p.fail(1, "Not inside a trusted directory and --skip-git-repo-check was not specified.")
	}
	ctx, cancel := context.WithCancelCause(p.life)
	defer cancel(nil)
	t := &codexTurn{process: p, args: a, ctx: ctx, sink: &execSink{process: p, json: a.json}, thread: thread}
	done := make(chan int, 1)
	go func() { done <- t.run(prompt) }()
	select {
	case code := <-done:
		return code
	case s := <-p.signals:
		cancel(signalError{s})
		<-done
		return p.codexSignal(signalError{s})
	}
}

// signalError is the error if a signal must end the process.
type signalError struct{ os.Signal }

func (s signalError) Error() string { return s.Signal.String() }

// codexSignal ends the process like Codex. An interrupt results in exit code 1. After SIGTERM, the process kills itself
// with SIGTERM.
func (p *process) codexSignal(err error) int {
	var s signalError
	if !errors.As(err, &s) {
		return p.fail(1, "Error: "+err.Error())
	}
	if s.Signal == os.Interrupt {
		return 1
	}
	if p.program.IgnoreTerm != nil { // the agent is part of another process, which the signal must not kill
		return 143
	}
	signal.Reset(syscall.SIGTERM)
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	time.Sleep(time.Second) // wait for the signal to end the process
	return 143
}

// codexThread finds the thread to continue, or creates a new one. It also returns the prompt on the command line.
func (p *process) codexThread(a codexArgs) (thread, prompt string, code int, ok bool) {
	words := a.words
	if a.command == "resume" || a.command == "fork" {
		switch {
		case len(words) == 0:
			return "", "", p.fail(1, "Error: no session id"), false
		default:
			thread, words = words[0], words[1:]
			if known := p.store.has(codexFolder, thread); uuid.Validate(thread) == nil && !known {
				return "", "", p.fail(1, "Error: thread/resume: thread/resume failed: no rollout found for thread id "+
					thread+" (code -32600)"), false
			} else if !known {
				thread = "" // like Codex, start a new thread if the name is unknown
			}
		}
	}
	if a.command == "fork" && thread != "" {
		from := thread
		thread = newThreadID()
		for _, e := range p.store.read(codexFolder, from) {
			if err := p.store.add(codexFolder, thread, e); err != nil {
				return "", "", p.fail(1, "Error: "+err.Error()), false
			}
		}
	}
	if thread == "" {
		thread = newThreadID()
	}
	if len(words) > 1 {
		return "", "", p.fail(2, usageError{words[1], a.usage()}.Error()), false
	}
	if len(words) == 1 {
		prompt = words[0]
	}
	return thread, prompt, 0, true
}

// codexPrompt adds standard input to the prompt. It waits until standard input ends, however long this takes.
func (p *process) codexPrompt(a codexArgs, prompt string) (string, error) {
	if prompt != "" && prompt != "-" && a.command != "exec" {
		return prompt, nil
	}
	if prompt != "-" {
		fmt.Fprintln(p.stderr, "Reading additional input from stdin...")
	}
	piped := make(chan []byte, 1)
	go func() {
		b, err := io.ReadAll(p.stdin)
		if err != nil {
			b = nil
		}
		piped <- b
	}()
	select {
	case b := <-piped:
		text := strings.TrimRight(string(b), "\n")
		switch {
		case prompt == "" || prompt == "-":
			return text, nil
		case text != "":
			return prompt + "\n\n<stdin>\n" + text + "\n</stdin>", nil
		}
		return prompt, nil
	case s := <-p.signals:
		return "", signalError{s}
	}
}

// newThreadID creates a version 7 UUID. Codex uses such UUIDs for threads.
func newThreadID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return newUUID()
	}
	return id.String()
}

func insideGit(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
