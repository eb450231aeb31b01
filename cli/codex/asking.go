package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
)

// ask deals with a request of this turn. While the past is told it may have been answered long ago: what is open
// at its end is told then.
func (t *liveTurn) ask(m rpc.Message) {
	var whose about
	_ = json.Unmarshal(m.Params, &whose) // what names no turn is of this one
	a := newInquiry(m)
	if whose.Thread == t.s.thread && whose.Turn != "" && whose.Turn != t.parser.turn {
		if !t.past {
			_ = t.s.server.Peer().Reply(m.ID, declining(m), nil) // a turn that is over waits for no answer
		}
		return
	}
	if !t.asks.add(a) || t.past {
		return
	}
	for _, a := range t.asks.tell() {
		t.present(a)
	}
}

// present asks the user, or answers where the turn is not attended.
func (t *liveTurn) present(a *inquiry) {
	switch {
	case a.m.Method == askServer && len(a.params.Schema.Properties) > 0:
		t.deny(a, "it is a form, which cannot be filled in from the chat")
	case !t.req.Attended || !t.cut.IsZero():
		t.deny(a, "no user could be asked")
	case a.m.Method == askQuestions:
		t.out.Pass(cli.QuestionAsked{ID: a.id, Questions: questionsOf(a.params.Questions)})
	default:
		t.out.Pass(t.approvalOf(a))
	}
}

// deny declines a request without asking the user.
func (t *liveTurn) deny(a *inquiry, reason string) {
	if t.asks.remove(a.id) == nil {
		return
	}
	if a.m.Method != askQuestions {
		t.parser.denied(t.approvalOf(a), reason)
	}
	_ = t.s.server.Peer().Reply(a.m.ID, declining(a.m), nil) // a program that does not read shows otherwise
}

// decide answers an ask with what a person said. A reason travels as a message of its own: Codex has no place
// for it.
func (t *liveTurn) decide(id cli.ApprovalID, d cli.Decision) error {
	a := t.asks.take(id)
	if a == nil {
		return cli.ErrNotAsked
	}
	if !d.Allow && a.m.Method != askQuestions {
		t.in.Put(news{denied: a, reason: d.Reason}, 0)
		if d.Reason != "" {
			if err := t.explain(d.Reason); err != nil {
				return fmt.Errorf("answer codex: %w", err)
			}
		}
	}
	if err := t.s.server.Peer().Reply(a.m.ID, a.answer(d), nil); err != nil {
		return fmt.Errorf("answer codex: %w", err)
	}
	return nil
}

// explain sends why something is not allowed, before the answer itself: the turn may be over soon after that.
func (t *liveTurn) explain(reason string) error {
	t.mu.Lock()
	turn := t.id
	t.mu.Unlock()
	return t.s.server.Peer().Send(rpc.Request{Method: "turn/steer", Params: map[string]any{
		"threadId": t.s.thread, "expectedTurnId": turn, "input": inputOf(cli.Request{Prompt: "That is not allowed: " + reason}),
	}})
}

// resolved takes note that Codex no longer waits for an answer.
func (t *liveTurn) resolved(m rpc.Message) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	if a := t.asks.remove(cli.ApprovalID(strings.Trim(string(p.ID), `"`))); a != nil && a.told {
		t.out.Pass(cli.ApprovalWithdrawn{ID: a.id})
	}
}

func titleOf(s string) string { return cli.OneLine(s, maxTitle) }

func pathsOf(changes []cli.FileChanged, dir string) string {
	var paths []string
	for _, c := range changes {
		paths = append(paths, cli.Relative(dir, c.Path))
	}
	return strings.Join(paths, ", ")
}

func questionsOf(asked []askQuestion) []cli.Question {
	var questions []cli.Question
	for _, q := range asked {
		one := cli.Question{Header: q.Header, Text: q.Question, Free: q.Other || len(q.Options) == 0, Secret: q.Secret}
		for _, o := range q.Options {
			one.Options = append(one.Options, cli.Option{Label: o.Label, Description: o.Description})
		}
		questions = append(questions, one)
	}
	return questions
}
