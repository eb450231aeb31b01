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

// op is the operation of a button.
type op string

// Operations. Drafts have opAdd, opCancel, and the operations that change a job.
const (
	opList    op = "l" // arg: a page
	opOpen    op = "o"
	opNew     op = "n" // opens the job in a new message
	opRun     op = "r" // arg: the number of runs so far
	opPause   op = "p"
	opResume  op = "u"
	opHistory op = "h"
	opEdit    op = "e"
	opMore    op = "m" // shows the fields behind More
	opField   op = "f" // arg: the field
	opValue   op = "v" // arg: the field and the number of the choice
	opModel   op = "w"
	opDelete  op = "d" // asks for confirmation
	opDeleted op = "D"
	opAdd     op = "a"
	opCancel  op = "x"
)

// pressed is the parsed data of a button.
type pressed struct {
	op  op
	key string // key of the job or draft
	arg string
}

// press is a press of a button, with its user and message.
type press struct {
	pressed
	by      orchestrator.Press
	message int
}

// ShowButton shows a job in a new message.
func ShowButton(p lang.Printer, id orchestrator.JobID) tgapi.Button {
	return newButton(p.Text("cron.show-job"), opNew, jobKey(id), "")
}

// jobKey returns the key of a job in a button. The key is a digest, because ids can be too long for a button.
func jobKey(id orchestrator.JobID) string { return tgapi.Digest(string(id)) }

// draftKey returns the key of a draft in a button.
func draftKey(nonce string) string { return "+" + nonce }

// draft returns the nonce of the button's draft, or false if the button belongs to a job.
func (p pressed) draft() (nonce string, is bool) { return strings.CutPrefix(p.key, "+") }

// number returns the argument as a number, or 0 if it is not one.
func (p pressed) number() int {
	n, _ := tgapi.ButtonNumber(p.arg)
	return n
}

// newButton returns a button. The data always fits, because all parts are short.
func newButton(text string, op op, key, arg string) tgapi.Button {
	return tgapi.NewButton(text, Action, string(op)+":"+key+":"+arg)
}

// parseButton parses the data of newButton. It accepts any input, because a client may have forged the data.
func parseButton(data string) (pressed, bool) {
	parts := strings.Split(data, ":")
	if len(parts) != 3 || len(parts[0]) != 1 {
		return pressed{}, false
	}
	p := pressed{op: op(parts[0]), key: parts[1], arg: parts[2]}
	return p, p.key != "" || p.op == opList
}

// choice parses the argument of opValue.
func (p pressed) choice() (field string, index int, ok bool) {
	if p.arg == "" {
		return "", 0, false
	}
	index, err := strconv.Atoi(p.arg[1:])
	return p.arg[:1], index, err == nil && index >= 0
}
