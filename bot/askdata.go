package bot

import (
	"strconv"
	"strings"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// actAsk is the action of the buttons below what an agent asks.
const actAsk = "a"

// askOp is what a button below an ask does. The first press of a choice that makes a rule only shows the
// rule; the second one, on another button, is the choice.
type askOp string

// The operations. Options of questions are askOption with two numbers behind it.
const (
	askOnce        askOp = "1"
	askShowSession askOp = "s"
	askSession     askOp = "S"
	askShowPattern askOp = "p"
	askPattern     askOp = "P"
	askDeny        askOp = "d"
	askReason      askOp = "r" // deny, with a reason that the next message brings
	askFull        askOp = "f" // everything there is to decide on
	askBack        askOp = "b"
	askWords       askOp = "w" // answer in own words, which the next message brings
	askNext        askOp = "n" // the next question, or the end of them
	askOption      askOp = "o"
	askHere        askOp = "h" // below the notice that an ask may be missing: show it there
)

// choice is the decision that the operation is, if it is one.
func (op askOp) choice() (orchestrator.Choice, bool) {
	switch op {
	case askOnce:
		return orchestrator.AllowOnce, true
	case askSession:
		return orchestrator.AllowSession, true
	case askPattern:
		return orchestrator.AllowPattern, true
	case askDeny:
		return orchestrator.Deny, true
	}
	return "", false
}

// askPress is what a pressed button below an ask says.
type askPress struct {
	id               orchestrator.AskID
	nonce            string
	op               askOp
	question, option int // for askOption; question also for askNext and askWords
}

// data is the press as a button carries it; false if it is more than a button can carry.
func (p askPress) data() (string, bool) {
	what := string(p.id) + ":" + p.nonce + ":" + string(p.op)
	switch p.op {
	case askOption:
		what += strconv.Itoa(p.question) + "." + strconv.Itoa(p.option)
	case askNext, askWords:
		what += strconv.Itoa(p.question)
	}
	return tgapi.ButtonData(actAsk, what)
}

// parseAskData undoes data, without the action. What comes here was made by anybody: it names an ask and a
// choice, and proves nothing before the domain compared the nonce.
func parseAskData(what string) (askPress, bool) {
	id, rest, ok := strings.Cut(what, ":")
	nonce, op, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || id == "" || nonce == "" || op == "" {
		return askPress{}, false
	}
	p := askPress{id: orchestrator.AskID(id), nonce: nonce, op: askOp(op[:1])}
	switch p.op {
	case askOnce, askShowSession, askSession, askShowPattern, askPattern, askDeny, askReason, askFull, askBack, askHere:
		return p, len(op) == 1
	case askNext, askWords:
		p.question, ok = tgapi.ButtonNumber(op[1:])
		return p, ok
	case askOption:
		q, o, ok := strings.Cut(op[1:], ".")
		var ok1, ok2 bool
		p.question, ok1 = tgapi.ButtonNumber(q)
		p.option, ok2 = tgapi.ButtonNumber(o)
		return p, ok && ok1 && ok2
	}
	return askPress{}, false
}
