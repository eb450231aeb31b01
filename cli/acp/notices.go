package acp

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"ductor/cli"
)

// quirksOf returns the quirks of a program by the name that it calls itself, whichever section of the configuration starts it.
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

// planFile finds the file of a plan, among those that Gemini keeps for itself, in what it says of its tool exit_plan_mode; empty for
// any other tool.
func (q Quirks) planFile(id, title string) string {
	plan := geminiPlanLine().FindStringSubmatch(title)
	if !q.PlanFiles || plan == nil || filepath.Clean(plan[1]) != plan[1] || !strings.HasPrefix(id, "exit_plan_mode") {
		return ""
	}
	return plan[1]
}

// changesMode reports whether an update is a chunk that only says that the agent changed its mode.
func (q Quirks) changesMode(u *update) bool {
	mode, notice := strings.CutPrefix(u.Content.text(), "[MODE_UPDATE] ")
	return q.PlanFiles && u.Kind == updateMessage && notice && !strings.ContainsAny(mode, " \n")
}

var shellExitLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<shellId: \S+ completed with exit code (-?\d{1,9})>\s*$`)
})

// shellExit finds the exit code at the end of what Copilot says of a command.
func shellExit(output string) (*int, string) { return cli.NumberIn(shellExitLine(), output), "" }

// What an agent of Quirks.Notices says as text of its answer.
const (
	noticeError     = "Error: "
	noticeInfo      = "Info: "
	noticeRetrying  = noticeInfo + "Request failed due to a transient API error. Retrying..."
	noticeCancelled = noticeInfo + "Operation cancelled by user" // after a tool was not allowed
)

// notice takes a chunk that is the agent's own word, or may be. It comes whole, and a model's text mostly does not.
// Of "Info: " only what is known is taken, so that no answer is lost.
func (r *reporter) notice(text string) bool {
	r.sayHeld()
	switch {
	case strings.HasPrefix(text, noticeError):
		r.held = text
	case text == noticeRetrying:
		if !r.parted { // the message begins anew; one before a tool has ended
			r.out.GiveUp(r.key)
		}
		r.parted = true
		r.out.Pass(cli.Status{Kind: cli.StatusRetrying})
	case text == noticeCancelled, aboutFile(text):
	default:
		return false
	}
	return true
}

// aboutFile says whether a chunk only names a file, as it does when that was written.
func aboutFile(text string) bool {
	path, ok := strings.CutPrefix(text, noticeInfo)
	return ok && filepath.IsAbs(path) && !strings.Contains(path, "\n")
}

// sayHeld tells what was held: something came after it, so it was no error that ended the turn.
func (r *reporter) sayHeld() {
	text := r.held
	if r.held = ""; text != "" {
		r.say("", text)
	}
}

// failed says which error ended a turn, if one did. A turn of one call of the model, which counts, ended in an
// answer that only looks like one.
func (r *reporter) failed(used cli.Usage) (string, bool) {
	if r.held == "" || r.calls == 1 && used.Output > 0 {
		return "", false
	}
	text := strings.TrimPrefix(r.held, noticeError)
	r.held = ""
	return text, true
}
