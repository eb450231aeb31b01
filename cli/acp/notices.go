package acp

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"ductor/cli"
)

// quirksOf returns the quirks of a program by the name that the program reports. The section of the configuration that
// starts the program does not matter.
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

// planFile returns the path of the plan's file. Gemini puts the path into its description of the tool exit_plan_mode.
// planFile returns "" for other tools.
func (q Quirks) planFile(id, title string) string {
	plan := geminiPlanLine().FindStringSubmatch(title)
	if !q.PlanFiles || plan == nil || filepath.Clean(plan[1]) != plan[1] || !strings.HasPrefix(id, "exit_plan_mode") {
		return ""
	}
	return plan[1]
}

// changesMode reports whether an update is a text that only announces a change of the agent's mode.
func (q Quirks) changesMode(u *update) bool {
	mode, notice := strings.CutPrefix(u.Content.text(), "[MODE_UPDATE] ")
	return q.PlanFiles && u.Kind == updateMessage && notice && !strings.ContainsAny(mode, " \n")
}

var shellExitLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<shellId: \S+ completed with exit code (-?\d{1,9})>\s*$`)
})

// shellExit parses the exit code at the end of Copilot's output of a command.
func shellExit(output string) (*int, string) { return cli.NumberIn(shellExitLine(), output), "" }

// Texts that an agent with Quirks.Notices adds to its answer.
const (
	noticeError     = "Error: "
	noticeInfo      = "Info: "
	noticeRetrying  = noticeInfo + "Request failed due to a transient API error. Retrying..."
	noticeCancelled = noticeInfo + "Operation cancelled by user" // comes after a tool was denied
)

// notice handles a text that the agent itself may have written, not the model. It reports whether it handled the text.
// Texts of the agent arrive complete. Of the texts with "Info: " it handles only known ones, so that no part of an
// answer is lost.
func (r *reporter) notice(text string) bool {
	r.sayHeld()
	switch {
	case strings.HasPrefix(text, noticeError):
		r.held = text
	case text == noticeRetrying:
		if !r.message.parted { // the model repeats the message; if parted, a tool ended the previous message
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

// aboutFile reports whether a text only names a file. The agent sends such a text after writing a file.
func aboutFile(text string) bool {
	path, ok := strings.CutPrefix(text, noticeInfo)
	return ok && filepath.IsAbs(path) && !strings.Contains(path, "\n")
}

// sayHeld emits the held text as a part of the answer. It was not an error that ended the turn, because more followed.
func (r *reporter) sayHeld() {
	text := r.held
	if r.held = ""; text != "" {
		r.say("", text)
	}
}

// failed returns the error that ended a turn. It returns false if there was none. If the only model call of the turn
// has a usage, the text is an answer that only looks like an error.
func (r *reporter) failed(used cli.Usage) (string, bool) {
	if r.held == "" || r.calls == 1 && used.Output > 0 {
		return "", false
	}
	text := strings.TrimPrefix(r.held, noticeError)
	r.held = ""
	return text, true
}
