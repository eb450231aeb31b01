package cron

import (
	"strconv"
	"strings"

	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the action of the buttons of a Screen.
const Action = "j"

// op is what a button does.
type op string

// The operations. Those of drafts are opAdd, opCancel and those that change a job.
const (
	opList    op = "l" // with a page
	opOpen    op = "o"
	opNew     op = "n" // opOpen in a new message
	opRun     op = "r" // with the number of runs so far
	opPause   op = "p"
	opResume  op = "u"
	opHistory op = "h"
	opEdit    op = "e"
	opMore    op = "m" // the fields behind More
	opField   op = "f" // with the field
	opValue   op = "v" // with the field and the number of the choice
	opModel   op = "w"
	opDelete  op = "d" // asks first
	opDeleted op = "D"
	opAdd     op = "a"
	opCancel  op = "x"
)

// pressed is the data of a button.
type pressed struct {
	op  op
	key string // of the job, or of the draft
	arg string
}

// press is a pressed button of a message.
type press struct {
	pressed
	by      orchestrator.Press
	message int
}

// ShowButton shows a job in a new message.
func ShowButton(p lang.Printer, id orchestrator.JobID) tgapi.Button {
	return newButton(p.Text("cron.show-job"), opNew, jobKey(id), "")
}

// jobKey is a job as a button names it: ids may be longer than a button can carry.
func jobKey(id orchestrator.JobID) string { return tgapi.Digest(string(id)) }

// draftKey is a draft as a button names it.
func draftKey(nonce string) string { return "+" + nonce }

// draft is the nonce of the draft that the button names, if it names one.
func (p pressed) draft() (nonce string, is bool) { return strings.CutPrefix(p.key, "+") }

// number is the argument as a number that may be one of a page or a choice; 0 for what is none.
func (p pressed) number() int {
	n, _ := tgapi.ButtonNumber(p.arg)
	return n
}

// newButton makes a button. All it carries is bounded, so it fits.
func newButton(text string, op op, key, arg string) tgapi.Button {
	return tgapi.NewButton(text, Action, string(op)+":"+key+":"+arg)
}

// parseButton reads the data of newButton. Anybody can have made it.
func parseButton(what string) (pressed, bool) {
	parts := strings.Split(what, ":")
	if len(parts) != 3 || len(parts[0]) != 1 {
		return pressed{}, false
	}
	p := pressed{op: op(parts[0]), key: parts[1], arg: parts[2]}
	return p, p.key != "" || p.op == opList
}

// choice splits the argument of opValue.
func (p pressed) choice() (field string, index int, ok bool) {
	if p.arg == "" {
		return "", 0, false
	}
	index, err := strconv.Atoi(p.arg[1:])
	return p.arg[:1], index, err == nil && index >= 0
}
