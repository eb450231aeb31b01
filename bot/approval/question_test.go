package approval

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// Whatever an agent asks and however far the user is, Telegram accepts the message and the data of its buttons, and
// secrets are neither shown nor stored.
func TestLawQuestionsAreAMessage(t *testing.T) {
	text := rapid.StringMatching(`(?s).{0,30}`)
	rapid.Check(t, func(rt *rapid.T) {
		long := func(label string) string {
			return strings.Repeat(text.Draw(rt, label), rapid.SampledFrom([]int{1, 1, 7, 200}).Draw(rt, label+" times"))
		}
		a := anApproval()
		a.ID, a.Nonce, a.Request = "ABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNOPQRSTUVWX", nil
		for range rapid.IntRange(1, 4).Draw(rt, "questions") {
			q := cli.Question{
				Header: long("header"), Text: long("text"),
				Multi: rapid.Bool().Draw(rt, "multi"), Free: true, Secret: rapid.Bool().Draw(rt, "secret"),
			}
			for range rapid.IntRange(0, 30).Draw(rt, "options") {
				q.Options = append(q.Options, cli.Option{Label: long("label"), Description: long("about")})
			}
			a.Questions = append(a.Questions, q)
		}
		var d draft
		for {
			q := a.Questions[d.Question]
			if len(q.Options) > 0 {
				d.toggle(q, rapid.IntRange(0, len(q.Options)-1).Draw(rt, "option"))
			}
			d.say(q, "hunter2"+long("words"), nil)
			checkQuestion(rt, a, d)
			if d.forward(a) {
				break
			}
		}
		a.State, a.Answers = orchestrator.ApprovalAnswered, d.answers(a.Questions)
		checkQuestion(rt, a, d)
	})
}

func checkQuestion(rt *rapid.T, a orchestrator.Approval, d draft) {
	m, k := (view{Approval: a}).draw(d, "Ann")
	if err := bottest.CheckMessage(m); err != nil {
		rt.Fatalf("%q: %v", m.Text, err)
	}
	if a.State != orchestrator.ApprovalOpen && strings.Contains(m.Text, "\n") {
		rt.Fatalf("questions that are %s take more than a line: %q", a.State, m.Text)
	}
	if (len(k) > 0) != (a.State == orchestrator.ApprovalOpen) {
		rt.Fatalf("what is %s has %d rows of buttons", a.State, len(k))
	}
	for _, row := range k {
		for _, b := range row {
			if p, ok := parseButtonData(strings.TrimPrefix(b.Data, Action+":")); !ok || p.id != a.ID || p.nonce != a.Nonce || len(b.Data) > tgapi.DataLimit {
				rt.Fatalf("the button says %q", b.Data)
			}
		}
	}
	kept, err := d.encode(a.Questions)
	if err != nil {
		rt.Fatal(err)
	}
	allSecret := true
	for _, q := range a.Questions {
		allSecret = allSecret && q.Secret
	}
	if allSecret && (strings.Contains(m.Text, "hunter2") || strings.Contains(string(kept), "hunter2")) {
		rt.Fatalf("a secret is shown or kept: %q %s", m.Text, kept)
	}
	if _, err := decodeDraft(kept, a.Questions); err != nil {
		rt.Fatal(err)
	}
}

// A draft survives a restart without its secrets. The approval asks for those again.
func TestADraftOutlivesARestart(t *testing.T) {
	questions := []cli.Question{{Text: "User?", Free: true}, {Text: "Password?", Free: true, Secret: true}, {Text: "Why?", Free: true}}
	a := orchestrator.Approval{ApprovalRequest: orchestrator.ApprovalRequest{Questions: questions}}
	press := orchestrator.Press{Person: 7, Arrived: time.Unix(900, 0).UTC(), Updates: []int64{3}}
	d := draft{View: opWords, Expectation: message.Expect(press, press.Arrived)}
	for _, words := range []string{"ann", "hunter2"} {
		d.say(questions[d.Question], words, []orchestrator.Attachment{{Path: "/u/" + words}})
		d.forward(a)
	}
	if d.applied([]int64{5}) || !d.applied([]int64{5}) || d.applied([]int64{4}) {
		t.Error("an update takes effect once")
	}
	data, err := d.encode(questions)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeDraft(data, questions)
	if err != nil || got.Question != 1 || got.Words[0] != "ann" || got.Words[1] != "" || !got.applied([]int64{4}) {
		t.Errorf("goes on with %+v, %v", got, err)
	}
	for at, accepted := range map[int64]bool{899: false, 901: true, 1499: true, 1500: false} {
		m := orchestrator.Press{Person: 7, Arrived: time.Unix(at, 0), Updates: []int64{4}}
		if got.accepts(m) != accepted {
			t.Errorf("a message at %d is accepted: %v", at, !accepted)
		}
	}
	if v := got.verdict(questions); len(v.Files) == 0 || v.Files[0].Path != "/u/ann" {
		t.Errorf("the files are %+v", v.Files)
	}
	if _, err := decodeDraft([]byte("{"), questions); err == nil {
		t.Error("half a draft is believed")
	}
}
