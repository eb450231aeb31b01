package approval

import (
	"slices"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

type button struct {
	text lang.Key
	op   operation
}

// keyboard makes buttons that carry the id and the nonce of an approval, so they work after a restart too.
func (a view) keyboard(rows ...[]button) tgapi.Keyboard {
	var k tgapi.Keyboard
	for _, row := range rows {
		var buttons []tgapi.Button
		for _, b := range row {
			if data, ok := (buttonData{id: a.ID, nonce: a.Nonce, op: b.op}).encode(); ok {
				buttons = append(buttons, tgapi.Button{Text: a.lang.Text(b.text), Data: data})
			}
		}
		if len(buttons) > 0 {
			k = append(k, buttons)
		}
	}
	return k
}

// approvalButtons are the buttons of an open approval.
func (a view) approvalButtons(s *subject) tgapi.Keyboard {
	if a.Request.Tool == cli.ProjectTool {
		return a.projectButtons(s)
	}
	first, wider := []button{{"approval.deny", opDeny}}, []button{}
	if a.gate(s) != gateShut {
		first = append([]button{{"approval.allow-once", opOnce}}, first...)
		if a.SessionRule != "" {
			wider = append(wider, button{"approval.allow-session", opShowSession})
		}
		if a.Rule != "" {
			wider = append(wider, button{"approval.allow-pattern", opShowPattern})
		}
	}
	last := []button{{"approval.deny-with-reason", opReason}}
	label := func(f cli.Field) bool { return f.Weight == cli.LabelField }
	if s.cut || a.unreadFor(orchestrator.AllowSession) || a.unreadFor(orchestrator.AllowPattern) || slices.ContainsFunc(a.Request.Fields, label) {
		last = append(last, button{"common.full-text", opFullText})
	}
	return a.keyboard(first, wider, last)
}

// projectButtons are the buttons of a request to use the settings of a project: use them until they change, or leave them out.
func (a view) projectButtons(s *subject) tgapi.Keyboard {
	row := []button{{"approval.leave-settings", opDeny}}
	if a.gate(s) != gateShut && a.Rule != "" {
		row = append([]button{{"approval.use-settings", opPattern}}, row...)
	}
	return a.keyboard(row, []button{{"common.full-text", opFullText}})
}
