package approval

import (
	"strconv"
	"strings"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Action is the action of the buttons of approvals and questions.
const Action = "a"

// operation is what a button does. The first press of a choice that makes a rule only shows the rule; the second one, on
// another button, is the choice.
type operation string

// The operations. opOption has the numbers of a question and an option behind it.
const (
	opOnce        operation = "1"
	opShowSession operation = "s"
	opSession     operation = "S"
	opShowPattern operation = "p"
	opPattern     operation = "P"
	opEdits       operation = "e" // allow, and edits from now on
	opDeny        operation = "d"
	opReason      operation = "r" // deny; the next message is the reason
	opFullText    operation = "f" // send everything that there is to decide on
	opBack        operation = "b"
	opWords       operation = "w" // the next message is the answer
	opNext        operation = "n" // the next question, or send the answers
	opOption      operation = "o"
	opShow        operation = "h" // of the notice that an approval may be missing: show it there
)

// choice is the decision that the operation is, if it is one.
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

// buttonData is the data of a button.
type buttonData struct {
	id               orchestrator.ApprovalID
	nonce            string
	op               operation
	question, option int // for opOption; question also for opNext and opWords
}

// encode gives the data as a button carries it; false if it is more than a button can carry.
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

// parseButtonData undoes encode, without the action. Anybody can make such data: it names an approval and an operation, and
// proves nothing before its nonce is compared.
func parseButtonData(what string) (buttonData, bool) {
	id, rest, ok := strings.Cut(what, ":")
	nonce, op, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || id == "" || nonce == "" || op == "" {
		return buttonData{}, false
	}
	p := buttonData{id: orchestrator.ApprovalID(id), nonce: nonce, op: operation(op[:1])}
	switch p.op {
	case opOnce, opShowSession, opSession, opShowPattern, opPattern, opEdits, opDeny, opReason, opFullText, opBack, opShow:
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
