package acp

import (
	"cmp"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// questions returns the questions of a request, or nil if the request asks for permission. Only Qwen Code sends
// questions as permission requests, and marks them.
func (a *ask) questions(req cli.Request) []cli.Question {
	if a.form != nil {
		return a.form.questions(req)
	}
	return a.params.ToolCall.questions()
}

func (c *toolCall) questions() []cli.Question {
	if cli.TextsOf(c.Meta)["qwenInteractionKind"] != "user_question" {
		return nil
	}
	return cli.QuestionsIn(c.Input)
}

// replyTo returns the reply for a user's decision, and whether the tool then runs. The reply is nil if an answer does
// not fit a form. The reply identifies each answer by the number of its question. If the user answers no question, the
// reply still contains an answer that states this, because Qwen Code ends the turn if its question is rejected.
func (a *ask) replyTo(req cli.Request, d cli.Decision) (_ any, runs bool, _ error) {
	if a.form != nil {
		if r := a.form.reply(req, d); r != nil {
			return r, false, nil
		}
		return nil, false, nil
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

// askQuestions asks the user the questions. It does so in every permission mode.
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
