package approval

import (
	"slices"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

type button struct {
	text             string
	op               operation
	question, option int
}

func (a view) button(text lang.Key, op operation) button {
	return button{text: a.lang.Text(text), op: op}
}

// keyboard returns a message's buttons. Each button contains the ID and the nonce of the approval, so that the button
// also works after a restart of ductor.
func (a view) keyboard(rows ...[]button) tgapi.Keyboard {
	var k tgapi.Keyboard
	for _, row := range rows {
		var buttons []tgapi.Button
		for _, b := range row {
			data := buttonData{id: a.ID, nonce: a.Nonce, op: b.op, question: b.question, option: b.option}
			if encoded, ok := data.encode(); ok {
				buttons = append(buttons, tgapi.Button{Text: b.text, Data: encoded})
			}
		}
		if len(buttons) > 0 {
			k = append(k, buttons)
		}
	}
	return k
}

// offers returns the decisions for which the message has buttons.
func (a view) offers(s *subject) []orchestrator.Choice {
	if a.gate(s) == gateShut {
		return nil
	}
	return a.Offers()
}

func (a view) approvalButtons(s *subject) tgapi.Keyboard {
	if a.Request.Tool == cli.ProjectTool {
		return a.projectButtons(s)
	}
	words := buttonWords(a.Request.Tool)
	first, edits, wider := []button{a.button(words.deny, opDeny)}, []button{}, []button{}
	for _, choice := range a.offers(s) {
		switch choice {
		case orchestrator.AllowOnce:
			first = append([]button{a.button(words.allow, opOnce)}, first...)
		case orchestrator.AllowEdits:
			edits = append(edits, a.button(words.edits, opEdits))
		case orchestrator.AllowSession:
			wider = append(wider, a.button("approval.allow-session", opShowSession))
		case orchestrator.AllowPattern:
			wider = append(wider, a.button("approval.allow-pattern", opShowPattern))
		}
	}
	last := []button{a.button(words.reason, opReason)}
	if s.cut || a.unreadFor(orchestrator.AllowSession) || a.unreadFor(orchestrator.AllowPattern) {
		last = append(last, a.button("common.full-text", opFullText))
	}
	return a.keyboard(first, edits, wider, last)
}

// approvalWords are the texts of an approval's buttons. A plan has different texts, because the approval of a plan
// starts the work.
type approvalWords struct{ allow, edits, deny, reason lang.Key }

func buttonWords(tool string) approvalWords {
	if tool == cli.PlanTool {
		return approvalWords{
			"approval.begin", "approval.begin-and-edit", "approval.keep-planning", "approval.keep-planning-with-reason",
		}
	}
	return approvalWords{"approval.allow-once", "approval.accept-edits", "approval.deny", "approval.deny-with-reason"}
}

// whyNoText returns a text for a user who replied to a request that waits for no text. It names the button that asks
// for a reason if the card has this button.
func (a view) whyNoText(d draft) string {
	if a.Request.Tool == cli.ProjectTool || d.View != "" {
		return a.lang.Text("approval.tap")
	}
	return a.lang.Text("approval.tap-or-reason", a.lang.Text(buttonWords(a.Request.Tool).reason))
}

// projectButtons returns the buttons for the question whether agents may use the settings in a project's directory. A
// permission lasts until the settings change.
func (a view) projectButtons(s *subject) tgapi.Keyboard {
	row := []button{a.button("approval.leave-settings", opDeny)}
	if slices.Contains(a.offers(s), orchestrator.AllowPattern) {
		row = append([]button{a.button("approval.use-settings", opPattern)}, row...)
	}
	return a.keyboard(row, []button{a.button("common.full-text", opFullText)})
}
