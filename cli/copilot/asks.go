package copilot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

const (
	methodInput = "userInput.request"
	methodPlan  = "exitPlanMode.request"

	noUserAllows = "No user can allow this now: the permission mode of this conversation does not let it through. " +
		"Do what you can without it, and say what you could not do."
	noUserAnswers = "No user can answer this dialog here. Put the question, with its options, into your answer as plain " +
		"text and end your turn; the person will reply with the next message."
	noUserApproves = "No user can approve the plan in this dialog. Put the whole plan into your answer as plain text and end " +
		"your turn; the person will say with the next message whether to go on."
	declined = "The person does not want to answer."
)

// asksPeople says whether a request of the process is for people.
func asksPeople(method string) bool { return method == methodInput || method == methodPlan }

// asks are what a turn's agent waits for people to say. event and request are called by the turn's goroutine;
// decide may be called at any time.
type asks struct {
	server   *server
	session  cli.AgentSessionID
	attended bool
	judged   bool // what Copilot's judge approves is allowed without a question
	// protected are ductor's own files: a request that names one is for a user, whatever the judge says.
	protected []string
	past      bool // the request was made a while ago, and may have been answered

	mu     sync.Mutex
	heard  time.Time // when a person decided last
	open   []*ask
	inputs []inputAsked // announced and not yet asked
}

// ask is one thing that is waited for.
type ask struct {
	id      cli.ApprovalID
	request string          // permission: its id
	asked   json.RawMessage // question, plan: the id of the request to reply to
	method  string          // of that request; empty for a permission
	input   string          // question: the id under which its end is told
	choices []string
	auto    any // the answer that is given without a person; nil where a person is asked
	told    bool
}

type inputAsked struct{ id, question string }

// permissionAsked is what a permission request tells, of all its kinds.
type permissionAsked struct {
	Kind       string          `json:"kind"`
	ToolCallID string          `json:"toolCallId"`
	Command    string          `json:"fullCommandText"`
	Intention  string          `json:"intention"`
	Warning    string          `json:"warning"`
	File       string          `json:"fileName"`
	Resolved   string          `json:"resolvedPath"`
	Diff       string          `json:"diff"`
	NewFile    string          `json:"newFileContents"`
	Path       string          `json:"path"`
	Paths      []string        `json:"paths"`
	Server     string          `json:"serverName"`
	Tool       string          `json:"toolName"`
	Args       json.RawMessage `json:"args"`
	ToolArgs   json.RawMessage `json:"toolArgs"`
	URL        string          `json:"url"`
	Fact       string          `json:"fact"`
	Hook       string          `json:"hookMessage"`
	Managed    bool            `json:"managedApprovalRequired"`
	Edits      []struct {
		Before *fileState `json:"before"`
		After  *fileState `json:"after"`
	} `json:"fileEdits"`
	Judge struct {
		Recommendation string `json:"recommendation"`
	} `json:"assistedApproval"`
}

// event takes an event if it is about what people are asked for.
func (a *asks) event(p *parser, kind string, f fields) bool {
	switch kind {
	case evPermissionAsked:
		if !f.ResolvedByHook {
			a.permission(p, f)
		}
	case evPermissionDone:
		a.over(p, func(o *ask) bool { return o.request == f.RequestID && o.method == "" })
	case evInputAsked:
		a.mu.Lock()
		a.inputs = append(a.inputs, inputAsked{f.RequestID, f.Question})
		a.mu.Unlock()
	case evInputDone:
		a.over(p, func(o *ask) bool { return o.input != "" && o.input == f.RequestID })
	case evPlanDone:
		a.over(p, func(o *ask) bool { return o.method == methodPlan })
	default:
		return false
	}
	return true
}

// permission takes a request for leave to use a tool.
func (a *asks) permission(p *parser, f fields) {
	var asked permissionAsked
	_ = json.Unmarshal(f.Permission, &asked) // a kind of a shape unknown is asked for by its name
	var prompt permissionAsked
	_ = json.Unmarshal(f.Prompt, &prompt)
	if asked.Judge.Recommendation == "" {
		asked.Judge = prompt.Judge
	}
	if asked.Paths == nil {
		asked.Paths = prompt.Paths
	}
	o := &ask{id: cli.ApprovalID("permission/" + f.RequestID), request: f.RequestID}
	switch {
	case a.allows(p.dir, asked, f.Permission):
		o.auto = allowance(a.session, f.RequestID)
	case !a.attended:
		o.auto = denial(a.session, f.RequestID, noUserAllows)
	}
	a.add(p, o, func() cli.Event { return approval(p, o.id, asked, f.Permission) })
}

// allows says whether the permission mode lets a request through without a person.
func (a *asks) allows(dir string, asked permissionAsked, raw json.RawMessage) bool {
	if asked.Managed {
		return false
	}
	return a.judged && asked.Judge.Recommendation == "approve" && !cli.Names(a.protected, dir, raw)
}

// request takes a request of the process that only a person can answer.
func (a *asks) request(p *parser, r *rpc.Message) {
	var params struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
		Free     *bool    `json:"allowFreeform"`
		Summary  string   `json:"summary"`
		Plan     string   `json:"planContent"`
	}
	if json.Unmarshal(r.Params, &params) != nil {
		_ = a.server.Peer().Refuse(r.ID, rpc.CodeBadParams, "these params cannot be read") // see add
		return
	}
	o := &ask{id: cli.ApprovalID(r.Method + "/" + rpc.Text(r.ID)), asked: r.ID, method: r.Method, choices: params.Choices}
	if r.Method == methodPlan {
		if !a.attended {
			o.auto = map[string]any{"approved": false, "feedback": noUserApproves}
		}
		a.add(p, o, func() cli.Event {
			return planApproval(o.id, params.Summary, params.Plan, r.Params)
		})
		return
	}
	o.input = a.announced(params.Question)
	if !a.attended {
		o.auto = map[string]any{"answer": noUserAnswers, "wasFreeform": true}
	}
	q := cli.Question{Text: params.Question, Free: params.Free == nil || *params.Free}
	for _, c := range params.Choices {
		q.Options = append(q.Options, cli.Option{Label: c})
	}
	a.add(p, o, func() cli.Event { return cli.QuestionAsked{ID: o.id, Questions: []cli.Question{q}} })
}

// announced finds the id under which the end of a question will be told.
func (a *asks) announced(question string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, in := range a.inputs {
		if in.question == question {
			a.inputs = slices.Delete(a.inputs, i, i+1)
			return in.id
		}
	}
	return ""
}

// add waits for o to be answered, or answers it. What is caught up with may have been answered already, so
// nothing is answered without a person before all of it was heard.
func (a *asks) add(p *parser, o *ask, asked func() cli.Event) {
	a.mu.Lock()
	known := slices.ContainsFunc(a.open, func(other *ask) bool { return other.id == o.id })
	hold := o.auto == nil || a.past
	if !known && hold {
		a.open = append(a.open, o)
	}
	a.mu.Unlock()
	switch {
	case known:
	case o.auto == nil:
		o.told = true
		p.out.Pass(asked())
	case !hold:
		_ = a.answer(context.Background(), o, o.auto) // it cannot be sent only to a process that is dead
	}
}

// caughtUp answers what is unanswered and needs no user.
func (a *asks) caughtUp() {
	a.mu.Lock()
	a.past = false
	var due []*ask
	a.open = slices.DeleteFunc(a.open, func(o *ask) bool {
		if o.auto != nil {
			due = append(due, o)
		}
		return o.auto != nil
	})
	a.mu.Unlock()
	for _, o := range due {
		_ = a.answer(context.Background(), o, o.auto) // see add
	}
}

// over forgets what was answered by somebody else, or given up.
func (a *asks) over(p *parser, which func(*ask) bool) {
	a.mu.Lock()
	var gone []*ask
	a.open = slices.DeleteFunc(a.open, func(o *ask) bool {
		if which(o) {
			gone = append(gone, o)
			return true
		}
		return false
	})
	a.mu.Unlock()
	for _, o := range gone {
		if o.told {
			p.out.Pass(cli.ApprovalWithdrawn{ID: o.id})
		}
	}
}

// end forgets all.
func (a *asks) end(p *parser) { a.over(p, func(*ask) bool { return true }) }

// waited is what turn.Loop asks for.
func (a *asks) waited(now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return turn.WaitedUntil(now, len(a.open), a.heard)
}

// decide answers id for a person.
func (a *asks) decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	a.mu.Lock()
	i := slices.IndexFunc(a.open, func(o *ask) bool { return o.id == id && o.auto == nil })
	if i < 0 {
		a.mu.Unlock()
		return cli.ErrNotAsked
	}
	o := a.open[i]
	a.open, a.heard = slices.Delete(a.open, i, i+1), time.Now()
	a.mu.Unlock()
	return a.answer(ctx, o, a.decision(o, d))
}

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
		answer := declined
		if d.Reason != "" {
			answer = d.Reason
		}
		if d.Allow && len(d.Answers) > 0 {
			answer = strings.Join(d.Answers[0], ", ")
		}
		return map[string]any{"answer": answer, "wasFreeform": !slices.Contains(o.choices, answer)}
	case d.Allow:
		return allowance(a.session, o.request)
	}
	return denial(a.session, o.request, d.Reason)
}

// answer sends an answer. One to a permission is acknowledged; it is waited for where a person decided.
func (a *asks) answer(ctx context.Context, o *ask, with any) error {
	if o.method != "" {
		return a.server.Peer().Reply(o.asked, with, nil)
	}
	const method = "session.permissions.handlePendingPermissionRequest"
	if o.auto != nil {
		return a.server.notify(method, with)
	}
	var taken struct {
		Success *bool `json:"success"`
	}
	if err := a.server.call(ctx, method, with, &taken); err != nil {
		var refused *rpc.Error
		if errors.As(err, &refused) {
			return fmt.Errorf("%w: %s", cli.ErrNotAsked, cli.ShortLine(refused.Message))
		}
		return err
	}
	if taken.Success != nil && !*taken.Success {
		return cli.ErrNotAsked
	}
	return nil
}

func allowance(session cli.AgentSessionID, request string) map[string]any {
	return map[string]any{"sessionId": session, "requestId": request, "result": map[string]any{"kind": "approve-once"}}
}

// notAllowed is the reason where a person gave none: without one Copilot ends the whole turn.
const notAllowed = "The user did not allow this. Go on without it, or ask what to do instead."

func denial(session cli.AgentSessionID, request, why string) map[string]any {
	result := map[string]any{"kind": "reject", "feedback": cmp.Or(why, notAllowed)}
	return map[string]any{"sessionId": session, "requestId": request, "result": result}
}
