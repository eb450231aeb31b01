package approval

import (
	"slices"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

type button struct {
	text string
	op   operation
}

// keyboard makes buttons that carry the id and the nonce of an approval, so they work after a restart too.
func keyboard(a orchestrator.Approval, rows ...[]button) tgapi.Keyboard {
	var k tgapi.Keyboard
	for _, row := range rows {
		var buttons []tgapi.Button
		for _, b := range row {
			if data, ok := (buttonData{id: a.ID, nonce: a.Nonce, op: b.op}).encode(); ok {
				buttons = append(buttons, tgapi.Button{Text: b.text, Data: data})
			}
		}
		if len(buttons) > 0 {
			k = append(k, buttons)
		}
	}
	return k
}

// approvalButtons are the buttons of an open approval.
func approvalButtons(a orchestrator.Approval, s *subject) tgapi.Keyboard {
	if a.Request.Tool == cli.ProjectTool {
		return projectButtons(a, s)
	}
	first, wider := []button{{"⛔ Deny", opDeny}}, []button{}
	if gateOf(a, s) != gateShut {
		first = append([]button{{"✅ Allow once", opOnce}}, first...)
		if a.SessionRule != "" {
			wider = append(wider, button{"Allow this session…", opShowSession})
		}
		if a.Rule != "" {
			wider = append(wider, button{"Allow pattern…", opShowPattern})
		}
	}
	last := []button{{"Deny with reason…", opReason}}
	label := func(f cli.Field) bool { return f.Weight == cli.LabelField }
	if s.cut || unreadFor(a, orchestrator.AllowSession) || unreadFor(a, orchestrator.AllowPattern) || slices.ContainsFunc(a.Request.Fields, label) {
		last = append(last, button{"📄 Full text", opFullText})
	}
	return keyboard(a, first, wider, last)
}

// projectButtons are the buttons of a request to use the settings of a project: use them until they change, or leave them out.
func projectButtons(a orchestrator.Approval, s *subject) tgapi.Keyboard {
	row := []button{{"Without them", opDeny}}
	if gateOf(a, s) != gateShut && a.Rule != "" {
		row = append([]button{{"✅ Use them", opPattern}}, row...)
	}
	return keyboard(a, row, []button{{"📄 Full text", opFullText}})
}
