package approval

import (
	"ductor/bot/message"
	"ductor/lang"
	"ductor/orchestrator"
)

// effect describes how a button changed a draft.
type effect int

const (
	nothing effect = iota
	changed
	answeredLast // an answer changed, and all questions now have an answer
)

// press handles a button that changes only the draft. If the button asks for a text, press stores expectation in the
// draft. If the draft does not change, press returns a notice that tells the user why.
func (d *draft) press(a orchestrator.Approval, expectation message.Expectation, pressed buttonData) (effect, lang.Key) {
	if a.Request == nil {
		return d.pressQuestion(a, expectation, pressed)
	}
	switch op := pressed.op; {
	case op == opShowSession && a.SessionRule != "", op == opShowPattern && a.Rule != "":
		d.View = op
	case op == opReason:
		d.View, d.Expectation = opReason, expectation
	case op == opBack, op == opShow:
		d.View = ""
	default:
		return nothing, "common.stale-button"
	}
	return changed, ""
}

func (d *draft) pressQuestion(a orchestrator.Approval, expectation message.Expectation,
	pressed buttonData) (effect, lang.Key) {
	q := a.Questions[d.Question]
	switch pressed.op {
	case opBack:
		if d.View == "" {
			d.Question = max(d.Question-1, 0)
		}
		d.View = ""
		return changed, ""
	case opShow:
		return changed, ""
	}
	switch {
	case pressed.question != d.Question:
		return nothing, "approval.moved-on"
	case pressed.op == opWords && takesWords(q):
		d.View, d.Expectation = opWords, expectation
		return changed, ""
	case pressed.op == opOption && pressed.option < len(q.Options):
		d.View = ""
		d.toggle(q, pressed.option)
		if q.Multi {
			return changed, ""
		}
	case pressed.op == opNext && len(d.answer(d.Question, q)) > 0:
		d.View = ""
	case pressed.op == opNext:
		return nothing, "approval.pick-first"
	default:
		return nothing, "common.stale-button"
	}
	if d.forward(a) {
		return answeredLast, ""
	}
	return changed, ""
}
