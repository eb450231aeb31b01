package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// maxWorks is how often a turn may delegate work.
const maxWorks = 4

// Roles returns the configured roles, to which an agent can delegate work; see conversation.Roles.
type Roles interface {
	Role(name string) (orchestrator.Role, bool)
	Roles() []string
}

type workWith struct {
	Agent   string   `json:"agent,omitempty" jsonschema:"such as 'codex'; by default the role's, or the session's last"`
	Model   string   `json:"model,omitempty" jsonschema:"a model, such as 'opus' or 'gemini high'"`
	Task    string   `json:"task" jsonschema:"what the agent is to do in the project; it knows the session"`
	Role    string   `json:"role,omitempty" jsonschema:"a role that the user configured, for the agent to play"`
	Session string   `json:"session_id,omitempty" jsonschema:"the session that the work belongs to, as in consult_with"`
	Context []string `json:"context,omitempty" jsonschema:"files of the project that the agent reads with the task"`
}

func (t *toolset) addWork() {
	if t.s.opts.Consults == nil {
		return
	}
	registerTool(t, "work_with",
		"Have another agent work on a task in the project, and wait for its report. It may do what you may. The user "+
			"is asked first. "+
			"Until it reports, leave its files alone.",
		func(in workWith) string { return modelName(in.Agent, in.Model) + ": " + in.Task }, t.workWith)
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
		Agent   string   `json:"agent"`
		Task    string   `json:"task"`
		Role    string   `json:"role,omitempty"`
		Context []string `json:"context,omitempty"`
		Session string   `json:"session_id,omitempty"`
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
	return fmt.Sprintf("%s\n\n(%s worked on it; session_id %s%s)", report.Text, report.Model,
		cmp.Or(in.Session, string(report.Session)), leftOut(report)), nil
}

// checkWork returns an error if the turn may not delegate the work.
func checkWork(c call, in workWith) error {
	switch {
	case c.Request.Permission == cli.Plan:
		return errors.New("this turn only plans, and so another agent cannot work for it; consult_with asks one")
	case len(in.Task) > maxPrompt:
		return fmt.Errorf("the task has %d bytes, and %d are the limit; put what is long into a file", len(in.Task),
			maxPrompt)
	}
	return nil
}

// work checks the arguments of a call and returns the work that they describe.
func (t *toolset) work(ctx context.Context, c call, in workWith) (w orchestrator.Work, err error) {
	if w.ConsultQuestion, err = t.question(ctx, c, in.Task, in.Session, in.Context); err != nil {
		return w, err
	}
	role, known := t.s.opts.Roles.Role(in.Role)
	if in.Role != "" && !known {
		return w, fmt.Errorf("there is no role %q; roles here: %s", in.Role, strings.Join(t.s.opts.Roles.Roles(), ", "))
	}
	if known {
		w.Role, w.Instructions, w.Tools = in.Role, role.Prompt, []cli.ToolList{role.Tools}
	}
	switch name := modelName(in.Agent, in.Model); {
	case name == "" && role.Agent != "":
		w.Model = orchestrator.ModelChoice{Agent: role.Agent, Model: role.Model}
	case name == "":
		if w.Model, err = t.s.opts.Consults.LastWorker(ctx, w.Conversation,
			cmp.Or(in.Session, string(c.Turn.Session))); err != nil {
			return w, notAnswered(err)
		}
	default:
		w.Model, err = t.s.opts.FindModel(ctx, c.Turn.Sandbox, name)
	}
	return w, err
}

// countWork counts delegated work. It returns an error if the turn has delegated work more than maxWorks times.
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
