package approval

import (
	"strconv"
	"strings"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Action is the action of the buttons of approvals and questions.
const Action = "a"

// operation is the effect of a button. If a choice creates a rule, the first press only shows the rule, and a second
// button creates it.
type operation string

// Operations. The numbers of a question and an option follow opOption.
const (
	opOnce        operation = "1"
	opShowSession operation = "s"
	opSession     operation = "S"
	opShowPattern operation = "p"
	opPattern     operation = "P"
	opEdits       operation = "e" // allow, and allow further edits without asking
	opDeny        operation = "d"
	opReason      operation = "r" // deny; the next message is the reason
	opFullText    operation = "f" // send the complete text of the request
	opBack        operation = "b"
	opWords       operation = "w" // the next message is the answer
	opNext        operation = "n" // show the next question, or send the answers
	opOption      operation = "o"
	opShow        operation = "h" // on the notice of a missing approval: replace the notice by the approval
)

// choice returns the decision of the operation, or false if it does not decide.
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

// buttonData is the decoded data of a button.
type buttonData struct {
	id               orchestrator.ApprovalID
	nonce            string
	op               operation
	question, option int // for opOption; opNext and opWords use question only
}

// encode returns the data for a button. It returns false if the data is too long for a button.
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

// parseButtonData parses encoded data without the action. Clients can forge data, so the caller must compare the
// nonce.
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
