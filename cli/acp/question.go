package acp

import (
	"cmp"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// questions returns the questions of a request, or nil if the request asks for permission. Only Qwen Code sends
// questions as permission requests. Qwen Code marks such a request in the metadata.
func (a *ask) questions(req cli.Request) []cli.Question {
	if a.form != nil {
		return a.form.questions(req)
	}
	return a.params.ToolCall.Questions()
}

// replyTo returns the reply for a user's decision. It returns nil if an answer in a form is invalid. It also reports
// whether the reply makes the agent run the tool.
//
// If the user does not answer a question of Qwen Code, the reply contains a placeholder as the answer. Without an
// answer, Qwen Code would end the turn.
func (a *ask) replyTo(req cli.Request, d cli.Decision) (_ any, runs bool, _ error) {
	if a.form != nil {
		return a.form.reply(req, d), false, nil
	}
	questions := a.questions(req)
	if questions == nil {
		result, err := a.choose(d.Allow)
		return result, d.Allow, err
	}
	result, err := a.choose(true)
	result.Answers = map[string]string{}
	for i := range questions {
		chosen := cmp.Or(d.Reason, cli.NoAnswer)
		if i < len(d.Answers) && len(d.Answers[i]) > 0 {
			chosen = strings.Join(d.Answers[i], ", ")
		}
		result.Answers[strconv.Itoa(i)] = chosen
	}
	return result, true, err
}

// askQuestions asks the user the questions of a request. No permission mode answers them automatically.
func (t *liveTurn) askQuestions(a *ask, questions []cli.Question) {
	if !t.Req.Attended {
		result, _, err := a.replyTo(t.Req, cli.Decision{Reason: cli.NoUserAnswers})
		if err != nil {
			result = a.cancelled()
		}
		t.s.process.respond(a.id, result)
		return
	}
	asked := cli.QuestionAsked{ID: a.key(), Started: cli.ToolID(a.tool.call.ID), Questions: questions}
	if a.form == nil {
		t.reporter.showTool(a.tool)
	} else {
		asked.Started = cli.ToolID(a.form.CallID)
	}
	t.approvals.Add(turn.Pending[*ask]{ID: a.key(), About: a, Ask: func() cli.Event { return asked }})
}
