package acp

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"ductor/cli"
)

// quirksOf returns the quirks of the agent whose program reports the given name. It does not use the agent's name in
// the configuration, because users can configure any program under any name.
func (o *Options) quirksOf(program string) Quirks {
	if q, known := o.Programs[program]; known {
		return q
	}
	switch program {
	case "Copilot": // version 1.0.102 of GitHub's CLI
		return Quirks{TotalUsage: true, Notices: true, Tools: ToolQuirks{Failure: shellExit}}
	case "qwen-code": // version 0.24.4
		return Quirks{DropsPictures: true}
	}
	return Quirks{}
}

var geminiPlanLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^Requesting plan approval for: (/.+/\.gemini/tmp/.+\.md)$`)
})

// planFile returns the path of the file with the plan that needs the user's approval, or "" for other tool calls.
// Gemini puts the path into the title of its tool exit_plan_mode.
func (q Quirks) planFile(id, title string) string {
	plan := geminiPlanLine().FindStringSubmatch(title)
	if !q.PlanFiles || plan == nil || filepath.Clean(plan[1]) != plan[1] || !strings.HasPrefix(id, "exit_plan_mode") {
		return ""
	}
	return plan[1]
}

// changesMode reports whether an update is text that only announces a change of the agent's mode.
func (q Quirks) changesMode(u *update) bool {
	mode, notice := strings.CutPrefix(u.Content.text(), "[MODE_UPDATE] ")
	return q.PlanFiles && u.Kind == updateMessage && notice && !strings.ContainsAny(mode, " \n")
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
	noticeCancelled = noticeInfo + "Operation cancelled by user" // follows the denial of a tool
)

// notice handles text in the answer that the agent itself wrote. It returns false if the text is the model's. The agent
// sends each text of its own in one piece. Of the texts that start with "Info: ", notice handles only those that ductor
// knows, because others may be a part of the model's answer.
func (r *reporter) notice(text string) bool {
	r.sayHeld()
	switch {
	case strings.HasPrefix(text, noticeError):
		r.held = text
	case text == noticeRetrying:
		if !r.message.parted { // the model will repeat its unfinished message
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

// aboutFile reports whether text only names a file. The agent sends such a text after it has written the file.
func aboutFile(text string) bool {
	path, ok := strings.CutPrefix(text, noticeInfo)
	return ok && filepath.IsAbs(path) && !strings.Contains(path, "\n")
}

// sayHeld emits r.held as a part of the answer. The agent continued after this text, so it was not the error that ended
// the turn.
func (r *reporter) sayHeld() {
	text := r.held
	if r.held = ""; text != "" {
		r.say("", text)
	}
}

// failed returns the text of the error that ended the turn, or false if there was none. If the turn's only model call
// produced output tokens, the text is an answer that only looks like an error.
func (r *reporter) failed(used cli.Usage) (string, bool) {
	if r.held == "" || r.calls == 1 && used.Output > 0 {
		return "", false
	}
	text := strings.TrimPrefix(r.held, noticeError)
	r.held = ""
	return text, true
}
