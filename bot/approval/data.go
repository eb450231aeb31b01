package approval

import (
	"strconv"
	"strings"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Action is the action in the data of all buttons of this package.
const Action = "a"

// operation is the effect of a button. A user presses two buttons to create a rule: the first shows the rule, and the
// second creates it.
type operation string

// Operations. The data of a button with opOption, opNext or opWords contains the index of a question. With opOption,
// the data also contains the index of an option.
const (
	opOnce        operation = "1"
	opShowSession operation = "s"
	opSession     operation = "S"
	opShowPattern operation = "p"
	opPattern     operation = "P"
	opEdits       operation = "e" // allow the request, and all further edits without asking
	opDeny        operation = "d"
	opReason      operation = "r" // deny the request; the user's next message is the reason
	opFullText    operation = "f" // send the full text of the request
	opBack        operation = "b"
	opWords       operation = "w" // the user's next message is the answer
	opNext        operation = "n" // show the next question, or send all answers
	opOption      operation = "o"
	opShow        operation = "h" // button of Screen.missing: show the approval in place of this notice
)

// choice returns the decision that the operation makes, or false if it makes none.
func (op operation) choice() (orchestrator.Choice, bool) {
	switch op {
	case opOnce:
		return orchestrator.AllowOnce, true
	case opSession:
		return orchestrator.AllowSession, true
	case opPattern:
		return orchestrator.AllowPattern, true
	case opEdits:
		return orchestrator.AllowEdits, true
	case opDeny:
		return orchestrator.Deny, true
	}
	return "", false
}

type buttonData struct {
	id               orchestrator.ApprovalID
	nonce            string
	op               operation
	question, option int // indexes for opOption; opNext and opWords use only question
}

// encode returns the data in the format for a button. It returns false if the data is too long.
func (p buttonData) encode() (string, bool) {
	what := string(p.id) + ":" + p.nonce + ":" + string(p.op)
	switch p.op {
	case opOption:
		what += strconv.Itoa(p.question) + "." + strconv.Itoa(p.option)
	case opNext, opWords:
		what += strconv.Itoa(p.question)
	}
	return tgapi.ButtonData(Action, what)
}

// parseButtonData parses the data of a button without the action. The data may be forged, so the caller must compare
// its nonce with the nonce of the approval.
func parseButtonData(what string) (buttonData, bool) {
	id, rest, ok := strings.Cut(what, ":")
	nonce, op, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || id == "" || nonce == "" || op == "" {
		return buttonData{}, false
	}
	p := buttonData{id: orchestrator.ApprovalID(id), nonce: nonce, op: operation(op[:1])}
	switch p.op {
	case opOnce, opShowSession, opSession, opShowPattern, opPattern, opEdits, opDeny, opReason, opFullText, opBack,
		opShow:
		return p, len(op) == 1
	case opNext, opWords:
		p.question, ok = tgapi.ButtonNumber(op[1:])
		return p, ok
	case opOption:
		q, o, ok := strings.Cut(op[1:], ".")
		var ok1, ok2 bool
		p.question, ok1 = tgapi.ButtonNumber(q)
		p.option, ok2 = tgapi.ButtonNumber(o)
		return p, ok && ok1 && ok2
	}
	return buttonData{}, false
}

// asksForText reports whether the operation asks the user for a reason or an answer.
func (op operation) asksForText() bool { return op == opReason || op == opWords }
