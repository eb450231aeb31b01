package copilot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

const (
	methodInput = "userInput.request"
	methodPlan  = "exitPlanMode.request"
	methodAllow = "session.permissions.handlePendingPermissionRequest"

	noUserAllows = "No user can allow this now: the permission mode of this conversation does not let it through. " +
		"Do what you can without it, and say what you could not do."
	noUserApproves = "No user can approve the plan in this dialog. Put the whole plan into your answer as plain text and end " +
		"your turn; the user will say with the next message whether to go on."
	// notAllowed is the reason of a denial if the user gave none. Without a reason, Copilot would end the whole turn.
	notAllowed = "The user did not allow this. Go on without it, or ask what to do instead."
)

// forUser reports whether a user must answer requests of this method.
func forUser(method string) bool { return method == methodInput || method == methodPlan }

// asks contains Copilot's open requests to the user in a turn. Only the turn's goroutine calls its methods, except
// decide and Waiting.
//
// While the turn reads output from before a restart of ductor, ductor answers no requests by itself. The previous
// process of ductor may have answered them.
type asks struct {
	*turn.Approvals[*ask]
	server  *server
	session cli.AgentSessionID
	policy  policy
	inputs  map[string]fields // questions from user_input.requested events, by their text
}

func newAsks(out *turn.Emitter, h *server, id cli.AgentSessionID, p policy) *asks {
	return &asks{Approvals: turn.NewApprovals[*ask](out, nil), server: h, session: id, policy: p, inputs: map[string]fields{}}
}

// policy determines which requests ductor answers without a user.
type policy struct {
	attended  bool
	judged    bool // whether ductor allows what Copilot's own risk assessment approves
	servers   []cli.ToolServer
	protected []string // ductor's own files; a user must decide about a request that names one of them
}

// ask is a request of Copilot that waits for an answer.
type ask struct {
	id      cli.ApprovalID
	request string          // ID of a permission request; empty for a question or a plan
	reply   json.RawMessage // ID of the JSON-RPC request that contains a question or a plan
	method  string          // method of that JSON-RPC request; empty for a permission request
	input   string          // ID of a question in the event user_input.completed; empty for other requests
	choices []string
	auto    any // the answer that ductor gives without a user; nil if a user decides
}

// permission handles a request to use a tool.
func (a *asks) permission(p *parser, f fields) {
	if f.ResolvedByHook {
		return
	}
	asked := readPermission(f)
	o := &ask{id: cli.ApprovalID("permission/" + f.RequestID), request: f.RequestID}
	switch {
	case asked.Managed: // Copilot requires a user's decision
	case asked.Kind == "mcp" && cli.Trusts(a.policy.servers, asked.Server+"."+asked.Tool) && !cli.Names(a.policy.protected, p.dir, f.Permission):
		o.auto = allowance(a.session, f.RequestID)
	case a.policy.judged && asked.Judge.Recommendation == "approve" && !cli.Names(a.policy.protected, p.dir, f.Permission):
		o.auto = allowance(a.session, f.RequestID)
	}
	if o.auto == nil && !a.policy.attended {
		o.auto = denial(a.session, f.RequestID, noUserAllows)
	}
	a.add(o, func() cli.Event { return approval(p, o.id, asked, f.Permission) })
}

func (a *asks) permissionDone(_ *parser, f fields) {
	a.Withdraw(func(o *ask) bool { return o.request == f.RequestID && o.method == "" })
}

// announce records a user_input.requested event. The question itself follows in a JSON-RPC request. That request lacks
// two IDs that the event contains: the ID of the tool call that asks, and the ID that the later event
// user_input.completed names.
func (a *asks) announce(_ *parser, f fields) { a.inputs[f.Question] = f }

func (a *asks) inputDone(_ *parser, f fields) {
	a.Withdraw(func(o *ask) bool { return o.input != "" && o.input == f.RequestID })
}

func (a *asks) planDone(*parser, fields) {
	a.Withdraw(func(o *ask) bool { return o.method == methodPlan })
}

// request handles a JSON-RPC request with a question or a plan.
func (a *asks) request(r *rpc.Message) {
	var params struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
		Free     *bool    `json:"allowFreeform"`
		Summary  string   `json:"summary"`
		Plan     string   `json:"planContent"`
	}
	if json.Unmarshal(r.Params, &params) != nil {
		// Sending fails only if the process has exited.
		_ = a.server.Peer().Refuse(r.ID, rpc.CodeBadParams, "these params cannot be read")
		return
	}
	o := &ask{id: cli.ApprovalID(r.Method + "/" + rpc.Text(r.ID)), reply: r.ID, method: r.Method, choices: params.Choices}
	if r.Method == methodPlan {
		if !a.policy.attended {
			o.auto = map[string]any{"approved": false, "feedback": noUserApproves}
		}
		a.add(o, func() cli.Event { return planApproval(o.id, params.Summary, params.Plan, r.Params) })
		return
	}
	announced := a.inputs[params.Question]
	o.input = announced.RequestID
	delete(a.inputs, params.Question)
	if !a.policy.attended {
		o.auto = map[string]any{"answer": cli.NoUserAnswers, "wasFreeform": true}
	}
	q := cli.Question{Text: params.Question, Free: params.Free == nil || *params.Free}
	for _, c := range params.Choices {
		q.Options = append(q.Options, cli.Option{Label: c})
	}
	asked := cli.QuestionAsked{ID: o.id, Started: cli.ToolID(announced.ToolCallID), Questions: []cli.Question{q}}
	a.add(o, func() cli.Event { return asked })
}

// add asks the user to answer the request o. If o.auto is set, add sends o.auto as the answer instead.
func (a *asks) add(o *ask, asked func() cli.Event) {
	a.Add(turn.Pending[*ask]{ID: o.id, About: o, Ask: func() cli.Event {
		if o.auto == nil {
			return asked()
		}
		_ = a.answer(context.Background(), o, o.auto) // an error means that the process has exited
		return nil
	}})
}

func (t *liveTurn) Decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	defer t.Check()
	return t.p.asks.decide(ctx, id, d)
}

func (a *asks) decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	o, ok := a.Take(id)
	if !ok {
		return cli.ErrNotAsked
	}
	return a.answer(ctx, o, a.decision(o, d))
}

// decision converts a user's decision to Copilot's format.
func (a *asks) decision(o *ask, d cli.Decision) any {
	switch {
	case o.method == methodPlan:
		reply := map[string]any{"approved": d.Allow}
		if d.Allow {
			reply["selectedAction"] = "interactive"
		} else if d.Reason != "" {
			reply["feedback"] = d.Reason
		}
		return reply
	case o.method == methodInput:
		answer := cmp.Or(d.Reason, cli.NoAnswer)
		if d.Allow && len(d.Answers) > 0 {
			answer = strings.Join(d.Answers[0], ", ")
		}
		return map[string]any{"answer": answer, "wasFreeform": !slices.Contains(o.choices, answer)}
	case d.Allow:
		return allowance(a.session, o.request)
	}
	return denial(a.session, o.request, d.Reason)
}

// answer sends an answer to Copilot. If a user decided about a permission request, it waits for Copilot's confirmation.
func (a *asks) answer(ctx context.Context, o *ask, with any) error {
	switch {
	case o.method != "":
		return a.server.Peer().Reply(o.reply, with, nil)
	case o.auto != nil:
		return a.server.Peer().Send(methodAllow, with)
	}
	var taken struct {
		Success *bool `json:"success"`
	}
	err := a.server.call(ctx, methodAllow, with, &taken)
	var refused *rpc.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %s", cli.ErrNotAsked, cli.ShortLine(refused.Message))
	case err == nil && taken.Success != nil && !*taken.Success:
		return cli.ErrNotAsked
	}
	return err
}

func allowance(session cli.AgentSessionID, request string) map[string]any {
	return map[string]any{"sessionId": session, "requestId": request, "result": map[string]any{"kind": "approve-once"}}
}

func denial(session cli.AgentSessionID, request, why string) map[string]any {
	result := map[string]any{"kind": "reject", "feedback": cmp.Or(why, notAllowed)}
	return map[string]any{"sessionId": session, "requestId": request, "result": result}
}
