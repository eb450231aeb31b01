package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// Limits of consulting.
const (
	maxConsults = 8 // questions to models in one turn
)

// Consults consults models outside of the conversations' turns, and lets agents work for turns. *consult.Engine
// implements it.
type Consults interface {
	Ask(ctx context.Context, q orchestrator.ConsultQuestion) (orchestrator.ConsultAnswer, error)
	Find(ctx context.Context, in orchestrator.ConversationID, id orchestrator.ConsultID) (orchestrator.Consult, error)
	Work(ctx context.Context, w orchestrator.Work) (orchestrator.ConsultAnswer, error)
	Group(ctx context.Context, q orchestrator.GroupQuestion,
		step func(orchestrator.GroupStep)) (orchestrator.GroupAnswer, error)
}

// FindModel resolves a model's name among the models of an environment. Its error lists the alternatives.
type FindModel func(ctx context.Context, in cli.Sandbox, name string) (orchestrator.ModelChoice, error)

type consultWith struct {
	Model    string `json:"model,omitempty" jsonschema:"a model or an agent, such as 'codex', 'opus' or 'gemini high'; not needed with session_id"`
	Question string `json:"question" jsonschema:"what the model is asked; it can read the files of the project (Codex cannot) and change nothing"`
	Session  string `json:"session_id,omitempty" jsonschema:"the id that an earlier answer came with, to ask on"`
	Context  string `json:"context,omitempty" jsonschema:"what the model must know besides"`
	Format   string `json:"output_format,omitempty" jsonschema:"how the answer is to be written"`
}

type groupThink struct {
	Models   []string `json:"models" jsonschema:"2 to 4 models or agents that answer side by side; the first of them concludes"`
	Question string   `json:"question" jsonschema:"what the models are asked"`
	Context  string   `json:"context,omitempty" jsonschema:"what the models must know besides"`
}

func (t *toolset) addConsult() {
	if t.s.opts.Consults == nil {
		return
	}
	registerTool(t, "consult_with",
		"Ask another model a question and wait for its answer. It has no shell, reads the project and changes "+
			"nothing. Codex reads no files.",
		func(in consultWith) string { return in.Model + ": " + in.Question }, t.consultWith)
	registerTool(t, "group_think",
		"Ask several models the same question side by side. Then the first of them weighs the answers and concludes.",
		func(in groupThink) string { return strings.Join(in.Models, ", ") + ": " + in.Question }, t.groupThink)
}

// compose combines a question with its context and the desired format.
func compose(question, background, format string) string {
	if background != "" {
		question = "<context>\n" + background + "\n</context>\n\n" + question
	}
	if format != "" {
		question += "\n\nWrite the answer like this: " + format
	}
	return question
}

func (t *toolset) consultWith(ctx context.Context, c call, in consultWith) (string, error) {
	if strings.TrimSpace(in.Question) == "" {
		return "", errors.New("the question is empty")
	}
	if err := t.s.countConsults(c, 1); err != nil {
		return "", err
	}
	q := orchestrator.ConsultQuestion{
		Conversation: c.Turn.Prompt.Conversation, Asks: c.Turn.ID, Follows: orchestrator.ConsultID(in.Session),
		Text: compose(in.Question, in.Context, in.Format),
		Wait: t.s.opts.Patience,
	}
	if in.Session == "" {
		var err error
		if q.Model, err = t.s.opts.FindModel(ctx, c.Turn.Sandbox, in.Model); err != nil {
			return "", err
		}
	}
	answer, err := t.s.opts.Consults.Ask(ctx, q)
	if err != nil {
		return "", notAnswered(err)
	}
	more := ""
	if answer.Whole != "" {
		more = "; this is its answer in short, ask on for more"
	}
	return fmt.Sprintf("%s\n\n(%s answered; session_id %s%s)", answer.Text, answer.Model, answer.Consult, more), nil
}

// groupThink asks the models concurrently. It skips models that fail, as long as two answer.
func (t *toolset) groupThink(ctx context.Context, c call, in groupThink) (string, error) {
	if len(in.Models) < 2 || len(in.Models) > orchestrator.GroupMost {
		return "", fmt.Errorf("a group has 2 to %d models", orchestrator.GroupMost)
	}
	if err := t.s.countConsults(c, len(in.Models)+1); err != nil {
		return "", err
	}
	var panel []orchestrator.ModelChoice
	for _, name := range in.Models {
		m, err := t.s.opts.FindModel(ctx, c.Turn.Sandbox, name)
		if err != nil {
			return "", err
		}
		panel = append(panel, m)
	}
	all, err := t.s.opts.Consults.Group(ctx, orchestrator.GroupQuestion{
		Conversation: c.Turn.Prompt.Conversation, Asks: c.Turn.ID, Panel: panel, Rounds: 1,
		Text: compose(in.Question, in.Context, ""), Wait: t.s.opts.Patience,
	}, func(orchestrator.GroupStep) {})
	if err != nil && !errors.Is(err, orchestrator.ErrNoGroup) {
		return "", notAnswered(err)
	}
	var b strings.Builder
	for _, s := range append(all.Steps, all.Conclusion) {
		switch {
		case s.Model.Agent == "": // the group has no conclusion
		case s.Err != nil:
			fmt.Fprintf(&b, "## %s did not answer\n\n%v\n\n", s.Model, notAnswered(s.Err))
		case s.Round > 1:
			fmt.Fprintf(&b, "## Conclusion\n\n%s\n\n", s.Answer.Text)
		default:
			fmt.Fprintf(&b, "## %s\n\n%s\n\n", s.Answer.Model, s.Answer.Text)
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w\n\n%s", err, b.String())
	}
	return b.String(), nil
}

// countConsults counts a turn's questions to models. It returns an error if they exceed the limit, or if no listed user
// asked for the turn.
func (s *Server) countConsults(c call, n int) error {
	if !c.Turn.Prompt.Rights.OfListed() {
		return errors.New("only a turn that a listed user asked for in the chat can ask other models")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.calls[c.Turn.Prompt.Conversation]
	if made.consults+n > maxConsults {
		return fmt.Errorf("%s asked models %d times, and %d are the limit; go on without", has(c), made.consults,
			maxConsults)
	}
	made.consults += n
	s.calls[c.Turn.Prompt.Conversation] = made
	return nil
}

// notAnswered returns the reason why a model did not answer, worded for an agent.
func notAnswered(err error) error {
	switch failure := (*cli.Failure)(nil); {
	case errors.As(err, &failure):
		return fmt.Errorf("%s did not answer: %s", failure.Agent, failure.Kind)
	case errors.Is(err, orchestrator.ErrNoConsult), errors.Is(err, orchestrator.ErrElsewhere):
		return errors.New("there is no such session_id in this chat")
	}
	return err
}
