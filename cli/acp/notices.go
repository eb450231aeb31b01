package acp

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"ductor/cli"
)

// quirksOf returns the quirks of the program with the given name. The program itself reports this name. The agent's
// name in the configuration is no substitute, because users can choose any name for a program.
func (o *Options) quirksOf(program string) Quirks {
	if q, known := o.Programs[program]; known {
		return q
	}
	switch program {
	case "Copilot": // observed in version 1.0.102 of GitHub's CLI
		return Quirks{Usage: UsageQuirks{Total: true}, Notices: true, Tools: ToolQuirks{Failure: shellExit}}
	case "qwen-code": // observed in version 0.24.4 of Qwen Code
		return Quirks{DropsPictures: true}
	}
	return Quirks{}
}

var shellExitLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<shellId: \S+ completed with exit code (-?\d{1,9})>\s*$`)
})

// shellExit parses the exit code that Copilot appends to the output of a command.
func shellExit(output string) (*int, string) { return cli.NumberIn(shellExitLine(), output), "" }

// Beginnings of the texts that an agent with Quirks.Notices adds to the model's answer.
const (
	noticeError     = "Error: "
	noticeInfo      = "Info: "
	noticeRetrying  = noticeInfo + "Request failed due to a transient API error. Retrying..."
	noticeCancelled = noticeInfo + "Operation cancelled by user" // the agent sends this text after a tool was denied
)

// notice handles a text that the agent itself, and not the model, has added to the answer. It returns false for a text
// of the model. The agent sends each of its own texts in one piece. Texts that start with "Info: " may also be from the
// model, so notice handles only those that ductor knows.
func (r *reporter) notice(text string) bool {
	r.sayHeld()
	switch {
	case strings.HasPrefix(text, noticeError):
		r.held = text
	case text == noticeRetrying:
		if !r.message.parted { // the message is unfinished, and the agent will send it again
			r.out.GiveUp(r.message.key)
		}
		r.message.parted = true
		r.out.Pass(cli.Status{Kind: cli.StatusRetrying})
	case text == noticeCancelled, aboutFile(text):
	default:
		return false
	}
	return true
}

// aboutFile reports whether the text is only the path of a file that the agent has written.
func aboutFile(text string) bool {
	path, ok := strings.CutPrefix(text, noticeInfo)
	return ok && filepath.IsAbs(path) && !strings.Contains(path, "\n")
}

// sayHeld adds the text in r.held to the answer. This text looks like an error that ends the turn. But the caller knows
// that the agent has continued, so the text is a normal part of the answer.
func (r *reporter) sayHeld() {
	text := r.held
	if r.held = ""; text != "" {
		r.say("", text)
	}
}

// failed returns the error that ended the turn. It returns false if there was no error.
//
// The model's answer can also start with "Error: ". failed recognizes such an answer by two facts: the turn had only
// one model call, and this call produced output tokens.
func (r *reporter) failed(used cli.Usage) (string, bool) {
	if r.held == "" || r.calls == 1 && used.Output > 0 {
		return "", false
	}
	text := strings.TrimPrefix(r.held, noticeError)
	r.held = ""
	return text, true
}
