package cron

import (
	"strconv"
	"strings"

	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the first part of the data of all buttons of this package.
const Action = "j"

// op is the command in the data of a button.
type op string

// Operations of the buttons. A draft has the buttons opAdd, opCancel and opOpen, and those that edit a job.
const (
	opList    op = "l" // arg: the number of the page
	opOpen    op = "o"
	opNew     op = "n" // sends the page as a new message
	opRun     op = "r" // arg: how often the job had run when the button was created; see Screen.run
	opPause   op = "p"
	opResume  op = "u"
	opHistory op = "h"
	opEdit    op = "e"
	opMore    op = "m" // shows the less common settings
	opField   op = "f" // arg: the code of the field
	opValue   op = "v" // arg: the code of the field, and the index of the choice
	opModel   op = "w"
	opDelete  op = "d" // asks the user to confirm the deletion
	opDeleted op = "D"
	opAdd     op = "a"
	opCancel  op = "x"
)

// pressed is the parsed data of a button.
type pressed struct {
	op  op
	key string // key of the job or draft, see jobKey and draftKey; empty for opList
	arg string
}

// press is the press of a button: the parsed data, the user, and the ID of the message with the button.
type press struct {
	pressed
	by      orchestrator.Press
	message int
}

// ShowButton returns a button that sends the page of a job as a new message.
func ShowButton(p lang.Printer, id orchestrator.JobID) tgapi.Button {
	return newButton(p.Text("cron.show-job"), opNew, jobKey(id), "")
}

// jobKey returns a short hash of a job's ID for the data of a button, because some IDs are too long for it.
func jobKey(id orchestrator.JobID) string { return tgapi.Digest(string(id)) }

// draftKey returns the key of a draft for the data of a button. nonce is the draft's random ID.
func draftKey(nonce string) string { return "+" + nonce }

// draft returns the random ID of a draft. It returns false if the button belongs to a saved job.
func (p pressed) draft() (nonce string, is bool) { return strings.CutPrefix(p.key, "+") }

// number parses the argument of the button as a number. It returns 0 if the argument is not a number.
func (p pressed) number() int {
	n, _ := tgapi.ButtonNumber(p.arg)
	return n
}

// newButton returns a button with the given operation. The button's data is always short enough for Telegram, because
// all its parts are short.
func newButton(text string, op op, key, arg string) tgapi.Button {
	return tgapi.NewButton(text, Action, string(op)+":"+key+":"+arg)
}

// parseButton parses the data of a button. It returns false if the data is malformed: a modified Telegram client can
// send any text.
func parseButton(data string) (pressed, bool) {
	parts := strings.Split(data, ":")
	if len(parts) != 3 || len(parts[0]) != 1 {
		return pressed{}, false
	}
	p := pressed{op: op(parts[0]), key: parts[1], arg: parts[2]}
	return p, p.key != "" || p.op == opList
}

// choice parses the argument of opValue. It returns the code of a field and an index in the field's choices.
func (p pressed) choice() (field string, index int, ok bool) {
	if p.arg == "" {
		return "", 0, false
	}
	index, err := strconv.Atoi(p.arg[1:])
	return p.arg[:1], index, err == nil && index >= 0
}
