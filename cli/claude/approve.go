package claude

import (
	"encoding/json"
	"strings"

	"ductor/cli"
)

// ask takes a request for permission to people.
func (p *parser) ask(l *line) {
	a := request{
		id: cli.ApprovalID(l.RequestID), wire: l.RequestID, call: cli.ToolID(l.Request.ToolUseID),
		input: append(json.RawMessage(nil), l.Request.Input...),
	}
	if questions := questionsOf(l.Request); len(questions) > 0 {
		for _, q := range questions {
			a.questions = append(a.questions, q.Text)
		}
		a.event = cli.QuestionAsked{ID: a.id, Questions: questions}
	} else {
		a.event = p.approval(a, l.Request)
	}
	if p.asks.add(a) && !p.past {
		p.tellAsks()
	}
}

// tellAsks tells of what was asked and not told of yet.
func (p *parser) tellAsks() {
	if p.asks == nil {
		return
	}
	for _, a := range p.asks.tell() {
		p.em.Pass(a.event)
	}
}

// withdraw takes back what Claude waits for no more.
func (p *parser) withdraw(gone func(request) bool) {
	if p.asks == nil {
		return
	}
	p.tellWithdrawn(p.asks.drop(gone))
}

func (p *parser) tellWithdrawn(gone []request) {
	for _, a := range gone {
		if a.told {
			p.em.Pass(cli.ApprovalWithdrawn{ID: a.id})
		}
	}
}

// approval is a request as people are asked.
func (p *parser) approval(a request, r *controlRequest) cli.ApprovalAsked {
	ev := cli.ApprovalAsked{
		ID: a.id, Tool: r.Tool, Title: toolTitle(r.Tool, a.input, p.dir), Input: a.input, Reason: r.Reason,
	}
	if r.Blocked != "" {
		ev.Reason = strings.TrimSpace(ev.Reason + "\nit concerns " + relative(p.dir, r.Blocked))
	}
	if _, known := p.calls[a.call]; known {
		ev.Started = a.call
	}
	said := map[string]string{}
	fields := stringFields(a.input)
	ev.Changes = proposedChanges(r.Tool, a.input, p.dir, said)
	switch {
	case r.Tool == toolExitPlan:
		ev.Tool, ev.Detail = cli.PlanTool, fields["plan"]
		said["plan"] = ev.Detail
		ev.Missing = missing("the plan", ev.Detail)
	case len(ev.Changes) > 0:
	case r.Tool == "Bash":
		ev.Detail = fields["command"]
		said["command"] = ev.Detail
		ev.Missing = missing("the command", ev.Detail)
	}
	if ev.Detail == ev.Title {
		ev.Detail = ""
	}
	if ev.Detail == "" && len(ev.Changes) == 0 { // the card shows the title
		sayTitle(said, r.Tool, fields, ev.Title)
	}
	read := cli.Reading{Dir: p.dir, Said: said}
	if r.Tool == "Task" || r.Tool == "Agent" {
		read.Wider = []string{"mode", "permission_mode"}
	}
	ev.Fields = read.Fields(a.input)
	return ev
}

// missing is what a request leaves out whose subject is text.
func missing(what, text string) string {
	if strings.TrimSpace(text) != "" {
		return ""
	}
	return what
}

// sayTitle notes the field that is the title.
func sayTitle(said map[string]string, tool string, fields map[string]string, title string) {
	for _, key := range titleKeys(tool) {
		if fields[key] == title && title != "" {
			said[key] = title
			return
		}
	}
}

// questionsOf are the questions of AskUserQuestion; none if the request is no such thing.
func questionsOf(r *controlRequest) (all []cli.Question) {
	var in struct {
		Questions []struct {
			Question string `json:"question"`
			Header   string `json:"header"`
			Multi    bool   `json:"multiSelect"`
			Options  []struct {
				Label       string `json:"label"`
				Description string `json:"description"`
			} `json:"options"`
		} `json:"questions"`
	}
	if r.Tool != toolQuestion || tolerant(json.Unmarshal(r.Input, &in)) != nil {
		return nil
	}
	for _, q := range in.Questions {
		question := cli.Question{Header: q.Header, Text: q.Question, Multi: q.Multi, Free: true}
		for _, o := range q.Options {
			question.Options = append(question.Options, cli.Option{Label: o.Label, Description: o.Description})
		}
		all = append(all, question)
	}
	return all
}
