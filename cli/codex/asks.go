package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// Methods of Codex's requests to users.
const (
	askCommand     = "item/commandExecution/requestApproval"
	askFiles       = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askQuestions   = "item/tool/requestUserInput"
	askServer      = "mcpServer/elicitation/request" // a question of an MCP server, or a request to use its tool
)

// askable reports whether ductor can answer a request of this method.
func askable(method string) bool {
	return slices.Contains([]string{askCommand, askFiles, askPermissions, askQuestions, askServer}, method)
}

// askParams are the parameters of a request to the user. The method determines which fields are used.
type askParams struct {
	Thread  cli.AgentSessionID `json:"threadId"`
	Turn    string             `json:"turnId"`
	Item    string             `json:"itemId"`
	Reason  string             `json:"reason"`
	Command string             `json:"command"`

	Permissions json.RawMessage `json:"permissions"`
	Questions   []askQuestion   `json:"questions"`

	Server  string          `json:"serverName"`
	Message string          `json:"message"`
	Network json.RawMessage `json:"networkApprovalContext"`
	Schema  struct {
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"requestedSchema"`
	Meta struct {
		Kind       string                     `json:"codex_approval_kind"`
		Tool       string                     `json:"tool_name"`
		Parameters map[string]json.RawMessage `json:"tool_params"`
		Display    []struct {
			Name string `json:"name"`
		} `json:"tool_params_display"`
	} `json:"_meta"`
}

type askQuestion struct {
	ID       string `json:"id"`
	Header   string `json:"header"`
	Question string `json:"question"`
	Other    bool   `json:"isOther"`
	Secret   bool   `json:"isSecret"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// inquiry is a request of Codex that a user answers.
type inquiry struct {
	id     cli.ApprovalID // ID of the request in the protocol; a restart of ductor does not change it
	m      rpc.Message
	params askParams
}

func newInquiry(m rpc.Message) *inquiry {
	a := &inquiry{id: cli.ApprovalID(strings.Trim(string(m.ID), `"`)), m: m}
	_ = json.Unmarshal(m.Params, &a.params) // missing fields stay empty
	return a
}

// answer returns the JSON-RPC result that contains a user's decision.
func (a *inquiry) answer(d cli.Decision) any {
	switch a.m.Method {
	case askPermissions:
		if d.Allow && len(a.params.Permissions) > 0 {
			return map[string]any{"permissions": a.params.Permissions, "scope": "turn"}
		}
		return map[string]any{"permissions": struct{}{}, "scope": "turn"}
	case askQuestions:
		return a.answers(d)
	case askServer:
		if d.Allow {
			return map[string]any{"action": "accept", "content": struct{}{}}
		}
		return map[string]any{"action": "decline", "content": nil}
	}
	if d.Allow {
		return map[string]string{"decision": "accept"}
	}
	return map[string]string{"decision": "decline"}
}

// answers returns the result for questions. For a question without an answer, the result contains the user's reason, or
// a sentence which says that the user gives no answer.
func (a *inquiry) answers(d cli.Decision) any {
	answers := map[string]any{}
	for i, q := range a.params.Questions {
		chosen := []string{cmp.Or(d.Reason, "The person gives no answer. Decide yourself.")}
		if i < len(d.Answers) && len(d.Answers[i]) > 0 {
			chosen = d.Answers[i]
		}
		answers[q.ID] = map[string]any{"answers": chosen}
	}
	return map[string]any{"answers": answers}
}

// ask asks the user, or declines the request if its turn has ended.
func (t *liveTurn) ask(a *inquiry) {
	p := a.params
	// The request belongs to an earlier turn of this thread, which has ended.
	if p.Thread == t.s.id && p.Turn != "" && p.Turn != t.parser.turn {
		if !t.Loop.Past() {
			t.s.server.decline(a)
		}
		return
	}
	t.approvals.Add(turn.Pending[*inquiry]{ID: a.id, About: a, Ask: func() cli.Event { return t.present(a) }})
}

// present returns the event that shows the request to users. If no user can answer, it denies the request and returns
// nil.
func (t *liveTurn) present(a *inquiry) cli.Event {
	switch {
	case a.m.Method == askServer && len(a.params.Schema.Properties) > 0:
		t.deny(a, "it is a form, which cannot be filled in from the chat")
	case !t.Req.Attended || t.Loop.Cut():
		t.deny(a, "no user could be asked")
	case a.m.Method == askQuestions:
		return cli.QuestionAsked{ID: a.id, Questions: questionsOf(a.params.Questions)}
	default:
		return t.approvalOf(a)
	}
	return nil
}

// deny denies a request without asking a user.
func (t *liveTurn) deny(a *inquiry, reason string) {
	if a.m.Method != askQuestions {
		t.parser.denied(t.approvalOf(a), reason)
	}
	t.s.server.decline(a)
}

// Decide implements cli.Decider. Codex's protocol has no field for the reason of a denial, so Decide adds the reason to
// the turn as a message from the user.
func (t *liveTurn) Decide(_ context.Context, id cli.ApprovalID, d cli.Decision) error {
	a, ok := t.approvals.Take(id)
	if !ok {
		return cli.ErrNotAsked
	}
	t.Check()
	if !d.Allow && a.m.Method != askQuestions {
		t.s.live.Deliver(shared.Item[news]{Message: news{denied: a, reason: d.Reason}}, 0)
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

// explain adds the reason of a denial to the turn, as a message from the user. The caller must deny the request only
// after explain has returned, because a denial may end the turn.
func (t *liveTurn) explain(reason string) error {
	return t.s.server.Peer().Send("turn/steer", map[string]any{
		"threadId": t.s.id, "expectedTurnId": *t.name.Load(), "input": inputOf(cli.Request{Prompt: "That is not allowed: " + reason}),
	})
}

// resolved handles Codex's notification that a request needs no answer any more.
func (t *liveTurn) resolved(n *notice) {
	t.approvals.Withdraw(func(a *inquiry) bool { return a.id == cli.ApprovalID(strings.Trim(string(n.Request), `"`)) })
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
