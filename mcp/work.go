package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// maxWorks limits how often a turn may delegate work.
const maxWorks = 4

// Roles provides the roles for other agents; see conversation.Roles.
type Roles interface {
	Role(name string) (orchestrator.Role, bool)
	Roles() []string
}

type workWith struct {
	Agent   string `json:"agent,omitempty" jsonschema:"an agent or a model, such as 'codex', 'opus' or 'gemini high'; not needed with session_id, or with a role that has one"`
	Task    string `json:"task" jsonschema:"what the agent is to do in the project; it knows nothing of this conversation"`
	Role    string `json:"role,omitempty" jsonschema:"a role that the user configured, for the agent to play"`
	Session string `json:"session_id,omitempty" jsonschema:"the id that an earlier report came with, to go on with that work"`
	Context string `json:"context,omitempty" jsonschema:"what the agent must know besides"`
}

func (t *toolset) addWork() {
	if t.s.opts.Consults == nil {
		return
	}
	registerTool(t, "work_with",
		"Have another agent work on a task in the project, and wait for its report. It may do what you may. The user "+
			"is asked first. "+
			"Until it reports, leave its files alone.",
		func(in workWith) string { return in.Agent + ": " + in.Task }, t.workWith)
}

func (t *toolset) workWith(ctx context.Context, c call, in workWith) (string, error) {
	if err := checkWork(c, in); err != nil {
		return "", err
	}
	w, err := t.work(ctx, c, in)
	if err != nil {
		return "", err
	}
	if err := t.s.countWork(c); err != nil {
		return "", err
	}
	d, err := t.s.opts.Turns.AskUser(ctx, c.Turn.ID, approval(c, "work_with", w.Model.String(), in.Task, struct {
		Agent   string `json:"agent"`
		Task    string `json:"task"`
		Role    string `json:"role,omitempty"`
		Context string `json:"context,omitempty"`
		Session string `json:"session_id,omitempty"`
	}{w.Model.String(), in.Task, in.Role, in.Context, in.Session}))
	if err != nil {
		return "", fmt.Errorf("ask the user: %w", err)
	}
	if !d.Allow {
		return strings.TrimSpace("The user did not allow it. " + d.Reason), nil
	}
	report, err := t.s.opts.Consults.Work(ctx, w)
	if err != nil {
		return "", fmt.Errorf("%w; what the agent changed until then stays", notAnswered(err))
	}
	return fmt.Sprintf("%s\n\n(%s worked on it; session_id %s)", report.Text, report.Model, report.Consult), nil
}

// checkWork returns an error if a call must not delegate work.
func checkWork(c call, in workWith) error {
	switch n := len(in.Task) + len(in.Context); {
	case !c.Turn.Prompt.Rights.OfListed():
		return errors.New("only a turn that a listed user asked for in the chat can have another agent work")
	case c.Request.Permission == cli.Plan:
		return errors.New("this turn only plans, and so another agent cannot work for it; consult_with asks one")
	case strings.TrimSpace(in.Task) == "":
		return errors.New("the task is empty")
	case n > maxPrompt:
		return fmt.Errorf("task and context have %d bytes, and %d are the limit; put what is long into a file", n,
			maxPrompt)
	}
	return nil
}

// work returns the validated work of a call.
func (t *toolset) work(ctx context.Context, c call, in workWith) (orchestrator.Work, error) {
	w := orchestrator.Work{For: c, ConsultQuestion: orchestrator.ConsultQuestion{
		Conversation: c.Turn.Prompt.Conversation, Follows: orchestrator.ConsultID(in.Session),
		Text: compose(in.Task, in.Context, ""), Wait: t.s.opts.Patience,
	}}
	role, known := t.s.opts.Roles.Role(in.Role)
	if in.Role != "" && !known {
		return w, fmt.Errorf("there is no role %q; roles here: %s", in.Role, strings.Join(t.s.opts.Roles.Roles(), ", "))
	}
	if known {
		w.Instructions, w.Tools = role.Prompt, []cli.ToolList{role.Tools}
	}
	var err error
	switch {
	case in.Session != "":
		var before orchestrator.Consult
		if before, err = t.s.opts.Consults.Find(ctx, c.Turn.Prompt.Conversation, w.Follows); err != nil {
			return w, notAnswered(err)
		}
		w.Model = before.Model
	case in.Agent == "" && role.Agent != "":
		w.Model = orchestrator.ModelChoice{Agent: role.Agent, Model: role.Model}
	default:
		w.Model, err = t.s.opts.FindModel(ctx, c.Turn.Sandbox, in.Agent)
	}
	return w, err
}

// countWork counts the work that a turn delegates. It returns an error if that exceeds the limit.
func (s *Server) countWork(c call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.calls[c.Turn.Prompt.Conversation]
	if made.works >= maxWorks {
		return fmt.Errorf("%s had other agents work %d times, which is the limit; go on without", has(c), made.works)
	}
	made.works++
	s.calls[c.Turn.Prompt.Conversation] = made
	return nil
}
