package approval

import (
	"cmp"
	"strings"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// decidedMax is the maximum length of the request in a closed approval, in UTF-16 units. A closed approval has only one
// line.
const decidedMax = 80

// drawDecided shows a closed approval in one line, with the decision and the request. Only a plan stays complete,
// because users want to read the plan while the agent follows it.
func (a view) drawDecided(user string) render.Text {
	decision := a.drawDecision(user)
	switch {
	case a.Request == nil:
		return fitting([]render.Text{inOneLine(decision, a.answeredQuestions())})
	case a.Request.Tool == cli.PlanTool:
		return joinLines(append(a.subject().lines, decision))
	}
	return joinLines([]render.Text{inOneLine(decision, a.shortSubject())})
}

func inOneLine(decision, about render.Text) render.Text {
	between := " · "
	if strings.HasSuffix(decision.Text, ".") || strings.HasSuffix(decision.Text, "。") {
		between = " "
	}
	return render.Concat(decision, render.Plain(between), about)
}

// shortSubject describes the request in a few words. For a command or an edit of files, it omits the name of the tool.
func (a view) shortSubject() render.Text {
	req := a.Request
	what := cmp.Or(req.Detail, req.Title, a.shortFields())
	if len(req.Changes) > 0 {
		what = cli.Relative(a.Dir, req.Changes[0].Path)
	}
	about := render.Styled(render.Code, short(what, decidedMax))
	if n := len(req.Changes); n > 1 {
		about = render.Concat(about, render.Plain(" "+a.lang.Text("approval.more-files", n-1)))
	}
	switch {
	case req.Tool == cli.ProjectTool:
		return render.Filled(a.lang.Text("approval.settings-of", render.Slot), about)
	case req.OnlyEdits():
		return render.Concat(render.Plain(render.ChangeSign(req.Changes[0].Kind)+" "), about)
	case req.RunsCommand():
		return about
	}
	tool := short(render.ToolName(a.lang, req.Tool), render.NameLimit)
	return render.Concat(render.Styled(render.Bold, tool), render.Plain(" "), about)
}

func (a view) shortFields() string {
	var all []string
	for _, f := range a.Request.Fields {
		if f.Weight != cli.LabelField {
			all = append(all, f.Name+": "+f.Value)
		}
	}
	return strings.Join(all, ", ")
}

func (a view) answeredQuestions() render.Text {
	var all []render.Text
	for i, q := range a.Questions[:min(len(a.Questions), optionsMax/2)] {
		if i > 0 {
			all = append(all, render.Plain(" · "))
		}
		all = append(all, render.Plain(short(q.Text, answerMax)))
		answer := shownAnswer(a.lang, q, answerAt(a.Answers, i))
		if a.State == orchestrator.ApprovalAnswered && answer != "" {
			all = append(all, render.Plain(" → "), render.Styled(render.Bold, answer))
		}
	}
	return render.Concat(all...)
}
