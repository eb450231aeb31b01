package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ductor/cli"
)

// elicit asks with a form. params are the members after the session.
func (p *peer) elicit(id int, params string) {
	p.say(`{"id":%d,"method":"elicitation/create","params":{"sessionId":"s1",%s}}`, id, params)
}

// hearAction returns the next answer to a form.
func (p *peer) hearAction() (action string, content string) {
	p.t.Helper()
	var r struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	answer := p.hear("")
	if err := json.Unmarshal(answer.Result, &r); err != nil {
		p.t.Fatalf("answered %s: %s, %+v", answer.ID, answer.Result, answer.Error)
	}
	return r.Action, string(r.Content)
}

const aForm = `"mode":"form","message":"Set it up","requestedSchema":{"type":"object","required":["zone","size",` +
	`"big","tags"],"properties":{` +
	`"zone":{"type":"string","title":"Zone","oneOf":[{"const":"eu-1","title":"Europe"},{"const":"us-1",` +
	`"title":"America"}]},` +
	`"size":{"type":"integer","description":"How many?"},"big":{"type":"boolean"},` +
	`"tags":{"type":"array","items":{"type":"string","enum":["a","b","c"]}},"note":{"type":"string"},` +
	`"rate":{"type":"number"}}}`

// A form becomes one question for each field, in the agent's order. The answers reach the agent with their types.
func TestAFormIsAsked(t *testing.T) {
	s, p, turn, prompt := playTurn(t, func(r *cli.Request) { r.Permission = cli.Bypass })
	p.elicit(8, aForm)
	asked := until[cli.QuestionAsked](turn)
	var shown []string
	for _, q := range asked.Questions {
		var labels []string
		for _, o := range q.Options {
			labels = append(labels, o.Label)
		}
		shown = append(shown, fmt.Sprint(q.Header, "|", q.Text, "|", strings.Join(labels, ","), "|", q.Multi, q.Free))
	}
	want := []string{
		"|Set it up\n\nZone|Europe,America|false false", "size|How many?||false true",
		"|big|Yes,No|false false", "|tags|a,b,c|true false",
		"|note|Leave it out|false true", "|rate|Leave it out|false true",
	}
	if got := strings.Join(shown, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("asked\n%s", got)
	}
	answers := func(size, rate string) cli.Decision {
		return cli.Decision{Allow: true, Answers: [][]string{{"America"}, {size}, {"No"}, {"a", "c"},
			{"Leave it out"}, {rate}}}
	}
	for _, unfit := range []cli.Decision{answers("many", "1"), answers("1.5", "1"), answers("1", "NaN"),
		answers("1", "1e999")} {
		if err := s.Decide(t.Context(), asked.ID, unfit); err != nil {
			t.Fatal(err)
		}
		again := until[cli.QuestionAsked](turn)
		if first := again.Questions[0].Text; again.ID == asked.ID || !strings.Contains(first,
			"doesn't fit") || !strings.HasSuffix(first, "Set it up\n\nZone") {
			t.Errorf("asked again %+v", again)
		}
		asked = again
	}
	if err := s.Decide(t.Context(), asked.ID, answers(" 12 ", "0.5")); err != nil {
		t.Fatal(err)
	}
	if action, content := p.hearAction(); action != "accept" || content != `{"big":false,"rate":0.5,"size":12,`+
		`"tags":["a","c"],"zone":"us-1"}` {
		t.Errorf("answered %s %s", action, content)
	}
	p.endTurn(prompt)
	if r := until[cli.Result](turn); r.Err != nil || len(r.Denials) > 0 {
		t.Errorf("%+v", r)
	}
}

// A visit shows the whole address and its host. The agent learns whether the user went there.
func TestAVisitOfAPage(t *testing.T) {
	const host = "a-long-name.of-a-host.example.com:8443"
	const visit = `"mode":"url","elicitationId":"v1","url":"https://` + host + `/connect?a=b#c",` +
		`"message":"Please connect"`
	for name, c := range map[string]struct {
		decision *cli.Decision
		complete string
		action   string
	}{
		"done":       {&cli.Decision{Allow: true, Answers: [][]string{{"✅ I opened it"}}}, "", "accept"},
		"declined":   {&cli.Decision{Allow: true, Answers: [][]string{{"✖ Decline"}}}, "", "decline"},
		"unanswered": {&cli.Decision{}, "", "decline"},
		"complete":   {nil, "v1", "accept"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, turn, prompt := playTurn(t, nil)
			p.elicit(9, visit)
			asked := until[cli.QuestionAsked](turn)
			if q := asked.Questions; len(q) != 1 || q[0].Header != host ||
				!strings.HasSuffix(q[0].Text, "Please connect\n\nhttps://"+host+"/connect?a=b#c") ||
				len(q[0].Options) != 2 {
				t.Errorf("asked %+v", asked)
			}
			p.say(`{"method":"elicitation/complete","params":{"elicitationId":"another"}}`)
			if c.decision != nil {
				if err := s.Decide(t.Context(), asked.ID, *c.decision); err != nil {
					t.Fatal(err)
				}
			} else {
				p.say(`{"method":"elicitation/complete","params":{"elicitationId":%q}}`, c.complete)
				until[cli.ApprovalWithdrawn](turn)
			}
			if action, content := p.hearAction(); action != c.action || name != "done" && content != "" {
				t.Errorf("answered %s %s", action, content)
			}
			p.say(`{"method":"elicitation/complete","params":{"elicitationId":"v1"}}`) // again, or late
			p.endTurn(prompt)
			until[cli.Result](turn)
		})
	}
}

// No user is asked what cannot be shown whole, or without a user, or without a turn.
func TestFormsThatNobodyIsAsked(t *testing.T) {
	_, p, turn, prompt := playTurn(t, nil)
	many := ""
	for i := range maxFields + 1 {
		many += fmt.Sprintf(`"f%d":{"type":"string"},`, i)
	}
	field := func(field string) string {
		return `"mode":"form","requestedSchema":{"properties":{"a":` + field + `}}`
	}
	for _, bad := range []string{
		`"mode":"url","url":"https://user@example.com/"`, `"mode":"url","url":"https://bank.com@evil.com/"`,
		`"mode":"url","url":"https://bänk.com/"`, `"mode":"url","url":"https://e.com/\u202egnp"`,
		`"mode":"url","url":"httpx://e.com/"`, `"mode":"url","url":"https://e.com\\.evil.com/"`,
		`"mode":"url","url":"https://e.com/ x"`, `"mode":"url","url":"https://e%2ecom/"`,
		`"mode":"url","url":"https://` + strings.Repeat("a.", maxHost/2) + `com/"`,
		field(`{"type":"string","enum":["a","b","a"]}`), field(`{"type":"string","enum":["a"," "]}`),
		field(`{"type":"string","enum":["a","Leave it out"]}`),
		field(`{"type":"array","items":{"anyOf":[{"const":1,"title":"x"},{"const":2,"title":"x"}]}}`),
		field(`{"type":"string","enum":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16"]}`),
		field(`{"type":"string","description":"` + strings.Repeat("x", maxForm) + `"}`),
		`"mode":"dance","message":"m"`, `"message":"m"`, `"mode":"form","message":7`,
		`"mode":"form","requestedSchema":{"properties":{"a":{"type":"file"}}}`, `"mode":"form",` +
			`"requestedSchema":{"properties":[1]}`,
		`"mode":"form","requestedSchema":{"properties":{` + strings.TrimSuffix(many, ",") + `}}`,
		`"mode":"url","url":"javascript:alert(1)"`, `"mode":"url","url":"https://"`, `"mode":"url",` +
			`"url":"https://e.com/` + strings.Repeat("x", maxURL) + `"`,
	} {
		p.elicit(10, bad)
		if answer := p.hear(""); answer.Error == nil {
			t.Errorf("%.60s: answered %s", bad, answer.Result)
		}
	}
	p.elicit(11, aForm)
	asked := until[cli.QuestionAsked](turn)
	p.say(`{"method":"$/cancel_request","params":{"requestId":11}}`)
	if gone := until[cli.ApprovalWithdrawn](turn); gone.ID != asked.ID {
		t.Errorf("withdrawn %+v", gone)
	}
	if action, _ := p.hearAction(); action != "cancel" {
		t.Errorf("a cancelled form is answered %q", action)
	}
	p.endTurn(prompt)
	until[cli.Result](turn)
	p.elicit(12, aForm)
	if action, _ := p.hearAction(); action != "cancel" {
		t.Errorf("a form between two turns is answered %q", action)
	}

	_, p, turn, prompt = playTurn(t, func(r *cli.Request) { r.Attended = false })
	p.elicit(14, aForm)
	if action, _ := p.hearAction(); action != "decline" {
		t.Errorf("a form that no user can answer is answered %q", action)
	}
	p.endTurn(prompt)
	until[cli.Result](turn)
}
