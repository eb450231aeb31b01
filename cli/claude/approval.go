package claude

import (
	"encoding/json"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// asked is a request of Claude that waits for a user's decision.
type asked struct {
	id     string
	call   cli.ToolID
	answer func(cli.Decision) []byte // returns the line that answers the request
}

// pending converts a request of Claude to an event that asks the user.
func (t *tools) pending(id string, r *controlRequest) turn.Pending[asked] {
	input := append(json.RawMessage(nil), r.Input...)
	questions := questionsOf(r)
	var event cli.Event = cli.QuestionAsked{ID: cli.ApprovalID(id), Started: t.started(r), Questions: questions}
	if len(questions) == 0 {
		event = t.approval(cli.ApprovalID(id), r, input)
	}
	answer := func(d cli.Decision) []byte {
		switch {
		case questions != nil && (d.Allow || len(d.Answers) > 0):
			return allowLine(id, withAnswers(input, questions, d.Answers))
		case d.Allow:
			return allowLine(id, unedited(r.Tool, input))
		case d.Reason == "":
			return denyLine(id, unexplained)
		}
		return denyLine(id, d.Reason)
	}
	return turn.Pending[asked]{
		ID: cli.ApprovalID(id), About: asked{id: id, call: cli.ToolID(r.ToolUseID), answer: answer},
		Ask: func() cli.Event { return event },
	}
}

// unedited returns the input for a tool that the user allowed. For a plan, it removes the plan's text from the input,
// because Claude would otherwise assume that the user edited the plan. Claude itself reads the plan from a file. The
// input still contains the path of this file, because Claude 2.1.197 treats an empty input as missing.
func unedited(tool string, input json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if tool != toolExitPlan || json.Unmarshal(input, &all) != nil || all["planFilePath"] == nil {
		return input
	}
	delete(all, "plan")
	return jsonLine(all)
}

// withAnswers adds the user's answers to the input of a question. The format is that of AskUserQuestion's result: a map
// from the text of each question to its answers, joined by commas.
func withAnswers(input json.RawMessage, questions []cli.Question, chosen [][]string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(input, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	answers := map[string]string{}
	for i, q := range questions {
		if i < len(chosen) {
			answers[q.Text] = strings.Join(chosen[i], ", ")
		}
	}
	all["answers"] = jsonLine(answers)
	return jsonLine(all)
}

// approval converts a request to an event that asks the user for permission.
func (t *tools) approval(id cli.ApprovalID, r *controlRequest, input json.RawMessage) cli.ApprovalAsked {
	ev := cli.ApprovalAsked{
		ID: id, Tool: r.Tool, Title: toolTitle(r.Tool, input, t.dir), Input: input, Reason: r.Reason,
	}
	if path := cli.Relative(t.dir, r.Blocked); path != "" && !(r.Tool == "Bash" && cli.HasWord(cli.TextsOf(input)["command"], path)) {
		ev.Reason = strings.TrimSpace(ev.Reason + "\nit concerns " + path)
	}
	ev.Started = t.started(r)
	shownFields := map[string]string{}
	fields := cli.TextsOf(input)
	ev.Changes = proposedChanges(r.Tool, input, t.dir, shownFields)
	switch {
	case r.Tool == toolExitPlan:
		ev.Tool, ev.Detail = cli.PlanTool, fields["plan"]
		shownFields["plan"] = ev.Detail
		if path := fields["planFilePath"]; strings.Contains(path, "/.claude/plans/") {
			shownFields["planFilePath"] = path
		}
		ev.Missing = missing("the plan", ev.Detail)
	case len(ev.Changes) > 0:
	case r.Tool == "Bash":
		ev.Detail = fields["command"]
		shownFields["command"], shownFields["description"] = ev.Detail, fields["description"]
		ev.Reason = strings.TrimSpace(cli.OwnWords(fields["description"]) + "\n" + ev.Reason)
		ev.Missing = missing("the command", ev.Detail)
	}
	if ev.Detail == ev.Title {
		ev.Detail = ""
	}
	if ev.Detail == "" && len(ev.Changes) == 0 {
		addTitle(shownFields, r.Tool, fields, ev.Title)
	}
	read := cli.Reading{
		Dir: t.dir, Said: shownFields,
		Usual: map[string]string{"replace_all": "false", "edits.replace_all": "false", "run_in_background": "false"},
	}
	if len(ev.Changes) > 0 {
		read.Edit = []string{"replace_all", "edits.replace_all", "cell_id", "cell_type", "edit_mode"}
	}
	if r.Tool == "Task" || r.Tool == "Agent" {
		read.Wider = []string{"mode", "permission_mode"}
	}
	ev.Fields = read.Fields(input)
	ev.Effect = cli.EffectOf(input, t.dir, nil)
	switch r.Tool {
	case "Bash":
		ev.Effect.Shell = cli.ShellUseFor(ev.Reason)
	case "PowerShell", "Monitor":
		ev.Effect.Shell = cli.ShellExplained
	}
	return ev
}

// started returns the ID of the tool call that needs permission, or "" if users do not see this call yet.
func (t *tools) started(r *controlRequest) cli.ToolID {
	call := cli.ToolID(r.ToolUseID)
	if t.calls[call].name == "" {
		return ""
	}
	return call
}

// missing returns name if the text is blank, and otherwise "". The name describes a part of a request that users must
// see, such as "the plan".
func missing(name, text string) string {
	if strings.TrimSpace(text) != "" {
		return ""
	}
	return name
}

// addTitle adds an entry to shownFields if the title is the value of an input field. shownFields contains the fields
// that users already see in other parts of the request.
func addTitle(shownFields map[string]string, tool string, fields map[string]string, title string) {
	for _, key := range titleKeys(tool) {
		if fields[key] == title && title != "" {
			shownFields[key] = title
			return
		}
	}
}

// questionsOf returns the questions of a request by the tool AskUserQuestion, or nil for other requests.
func questionsOf(r *controlRequest) []cli.Question {
	if r.Tool != toolQuestion {
		return nil
	}
	return cli.QuestionsIn(r.Input)
}

// Permission is the input of a PermissionRequest hook. Claude runs the hook if it asks for permission in a user's
// terminal.
type Permission struct {
	Dir   string          `json:"cwd"`
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
}

// Asked converts p to an event for users: a cli.ApprovalAsked or a cli.QuestionAsked.
func (p Permission) Asked() cli.Event {
	r := p.request()
	if questions := questionsOf(r); len(questions) > 0 {
		return cli.QuestionAsked{Questions: questions}
	}
	t := tools{dir: p.Dir}
	return t.approval("", r, p.Input)
}

// Answer encodes a user's decision as the output of Claude's PermissionRequest hook.
func (p Permission) Answer(d cli.Decision) json.RawMessage {
	decision := map[string]any{"behavior": "deny", "message": d.Reason}
	switch questions := questionsOf(p.request()); {
	case len(questions) > 0 && (d.Allow || len(d.Answers) > 0):
		decision = map[string]any{"behavior": "allow", "updatedInput": withAnswers(p.Input, questions, d.Answers)}
	case d.Allow:
		decision = map[string]any{"behavior": "allow", "updatedInput": unedited(p.Tool, p.Input)}
	case d.Reason == "":
		decision["message"] = unexplained
	}
	return jsonLine(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PermissionRequest", "decision": decision}})
}

func (p Permission) request() *controlRequest { return &controlRequest{Tool: p.Tool, Input: p.Input} }
