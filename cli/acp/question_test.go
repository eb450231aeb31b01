package acp

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"ductor/cli"
)

// qwenAsks is the request of Qwen Code 0.24.4 after its model calls ask_user_question.
const qwenAsks = `{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s1","options":[{"optionId":"proceed_once","name":"Submit","kind":"allow_once"},` +
	`{"optionId":"cancel","name":"Cancel","kind":"reject_once"}],"toolCall":{"toolCallId":"call_15","status":"pending","title":"Ask user 2 questions","content":[],"locations":[],"kind":"think",` +
	`"rawInput":{"questions":[{"header":"Colour","multiSelect":false,"options":[{"description":"like a rose","label":"Red"},{"description":"like the sky","label":"Blue"}],"question":"Which colour?"},` +
	`{"header":"Sizes","multiSelect":true,"options":[{"description":"small","label":"S"},{"description":"large","label":"L"}],"question":"Which sizes?"}]},` +
	`"_meta":{"toolName":"ask_user_question","qwenInteractionKind":"user_question","qwenQuestions":[]}}}}`

// A question of Qwen Code comes as a permission request. The user sees a question, in every permission mode, and Qwen
// Code gets each answer.
func TestAQuestionAskedAsAPermission(t *testing.T) {
	for name, c := range map[string]struct {
		mode     cli.PermissionMode
		decision cli.Decision
		want     map[string]string
	}{
		"chosen":              {cli.Ask, cli.Decision{Allow: true, Answers: [][]string{{"Red"}, {"S", "L"}}}, map[string]string{"0": "Red", "1": "S, L"}},
		"in own words":        {cli.Plan, cli.Decision{Allow: true, Answers: [][]string{{"a shade of green"}, {"XL"}}}, map[string]string{"0": "a shade of green", "1": "XL"}},
		"not answered":        {cli.Ask, cli.Decision{}, map[string]string{"0": cli.NoAnswer, "1": cli.NoAnswer}},
		"no mode answers it":  {cli.Bypass, cli.Decision{Allow: true, Answers: [][]string{{"Blue"}, {"S"}}}, map[string]string{"0": "Blue", "1": "S"}},
		"declined with words": {cli.Auto, cli.Decision{Reason: "ask Ann"}, map[string]string{"0": "ask Ann", "1": "ask Ann"}},
	} {
		t.Run(name, func(t *testing.T) {
			provider, p := play(t, nil)
			req := wish(t, "hi")
			req.Permission = c.mode
			s := open(t, provider, req)
			turn := begin(t, s, req)
			prompt := p.hear(methodPrompt)
			p.say("%s", qwenAsks)
			if line := until[cli.ToolStarted](turn); line.Name != "ask_user_question" || line.Title != "Which colour?" {
				t.Errorf("the line is %+v", line)
			}
			asked := until[cli.QuestionAsked](turn)
			if q := asked.Questions; len(q) != 2 || q[0].Text != "Which colour?" || q[0].Options[1].Description != "like the sky" || q[0].Multi || !q[1].Multi || !q[1].Free || asked.Started != "call_15" {
				t.Fatalf("asked %+v", asked)
			}
			if err := s.Decide(t.Context(), asked.ID, c.decision); err != nil {
				t.Fatal(err)
			}
			var got askResult
			if answer := p.hear(""); json.Unmarshal(answer.Result, &got) != nil || got.Outcome.OptionID != "proceed_once" || !maps.Equal(got.Answers, c.want) {
				t.Errorf("answered %s, want %v", answer.Result, c.want)
			}
			p.endTurn(prompt)
			if r := until[cli.Result](turn); r.Err != nil || len(r.Denials) > 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestAQuestionThatNoUserCanAnswer(t *testing.T) {
	provider, p := play(t, nil)
	req := wish(t, "hi")
	req.Attended, req.Permission = false, cli.Bypass
	s := open(t, provider, req)
	turn := begin(t, s, req)
	prompt := p.hear(methodPrompt)
	p.say("%s", qwenAsks)
	if answer := p.hear(""); !strings.Contains(string(answer.Result), cli.NoUserAnswers) {
		t.Errorf("answered %s", answer.Result)
	}
	p.endTurn(prompt)
	until[cli.Result](turn)
}
