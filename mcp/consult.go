package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// Limits of questions to other models.
const (
	maxConsults = 8 // questions in one turn
)

// Consults sends questions to other models, and delegates work to other agents. *consult.Engine implements it.
type Consults interface {
	Ask(ctx context.Context, q orchestrator.ConsultQuestion) (orchestrator.ConsultAnswer, error)
	LastWorker(ctx context.Context, in orchestrator.ConversationID, idOrName string) (orchestrator.ModelChoice, error)
	Work(ctx context.Context, w orchestrator.Work) (orchestrator.ConsultAnswer, error)
	Group(ctx context.Context, q orchestrator.GroupQuestion,
		step func(orchestrator.GroupStep)) (orchestrator.GroupAnswer, error)
}

// FindModel looks up a model by name in an environment. If no model has this name, the error lists the available
// models.
type FindModel func(ctx context.Context, in cli.Sandbox, name string) (orchestrator.ModelChoice, error)

type consultWith struct {
	Agent    string   `json:"agent,omitempty" jsonschema:"such as 'codex'; by default the session's last"`
	Model    string   `json:"model,omitempty" jsonschema:"a model, such as 'opus' or 'gemini high'"`
	Question string   `json:"question" jsonschema:"what the model is asked; it knows the session, can read the files of the project (Codex cannot) and changes nothing"`
	Session  string   `json:"session_id,omitempty" jsonschema:"the session that the question belongs to: an id, or any name of your own, which is created if it is missing; this session by default"`
	Context  []string `json:"context,omitempty" jsonschema:"files of the project that go with the question"`
	Format   string   `json:"output_format,omitempty" jsonschema:"how the answer is to be written"`
}

type groupThink struct {
	Models   []string `json:"models" jsonschema:"2 to 4 models or agents that answer side by side; the first of them concludes"`
	Question string   `json:"question" jsonschema:"what the models are asked"`
	Session  string   `json:"session_id,omitempty" jsonschema:"the session of the question, as in consult_with"`
	Context  []string `json:"context,omitempty" jsonschema:"files of the project that go with the question"`
}

func (t *toolset) addConsult() {
	if t.s.opts.Consults == nil {
		return
	}
	registerTool(t, "consult_with",
		"Ask another model a question and wait for its answer. It has no shell, reads the project and changes "+
			"nothing. Codex reads no files.",
		func(in consultWith) string { return modelName(in.Agent, in.Model) + ": " + in.Question }, t.consultWith)
	registerTool(t, "group_think",
		"Ask several models the same question side by side. Then the first of them weighs the answers and concludes.",
		func(in groupThink) string { return strings.Join(in.Models, ", ") + ": " + in.Question }, t.groupThink)
}

// modelName joins the names of an agent and a model, in the form that FindModel expects.
func modelName(agent, model string) string {
	if rest, again := strings.CutPrefix(model, agent); again && (rest == "" || rest[0] == '/' || rest[0] == ' ') {
		return model
	}
	return strings.TrimSpace(agent + " " + model)
}

// question checks the arguments of a call and returns the question that they describe. The caller sets the model.
func (t *toolset) question(ctx context.Context, c call, text, session string,
	files []string) (q orchestrator.ConsultQuestion, err error) {
	if !c.Turn.Prompt.Rights.OfListed() {
		return q, errors.New("only a turn that a listed user asked for in the chat can ask other models and agents")
	}
	if strings.TrimSpace(text) == "" {
		return q, errors.New("the question or task is empty")
	}
	if err := orchestrator.CheckSessionName(session); err != nil {
		return q, err
	}
	q = orchestrator.ConsultQuestion{Conversation: c.Turn.Prompt.Conversation, Person: c.Turn.Prompt.Person,
		For: &c, Session: session, Text: text, Wait: t.s.opts.Patience}
	q.Context, err = t.contextFiles(ctx, c, files)
	return q, err
}

// Limits of the files that accompany a question.
const (
	maxContextFiles = 20
	maxContext      = 128 << 10 // size of all files together, in bytes
)

// contextFiles reads the files that accompany a question.
func (t *toolset) contextFiles(ctx context.Context, c call, paths []string) (all orchestrator.ContextFiles, err error) {
	if len(paths) == 0 {
		return all, nil
	}
	if len(paths) > maxContextFiles {
		return all, fmt.Errorf("context has %d files, and %d are the limit", len(paths), maxContextFiles)
	}
	place, err := t.s.opts.Place(ctx, c.Turn)
	if err != nil {
		return all, fmt.Errorf("find the project: %w", err)
	}
	var b strings.Builder
	for _, path := range paths {
		f, err := t.s.opts.ReadFile(ctx, place, path)
		var refused *orchestrator.FileError
		switch {
		case errors.As(err, &refused):
			return all, errors.New(refused.Sentence(lang.Printer{}))
		case err != nil:
			return all, fmt.Errorf("read %s: %w", path, err)
		case !utf8.Valid(f.Content):
			return all, fmt.Errorf("%s is not text; name files with text in context", path)
		case b.Len()+len(f.Content) > maxContext:
			return all, fmt.Errorf("the files in context have more than %d KB with %s; "+
				"name fewer or smaller ones", maxContext>>10, path)
		}
		b.WriteString(handoff.File(path, f.Content))
		all.Files = append(all.Files, orchestrator.Attachment{Path: path, Name: f.Name, MIME: "text/plain"})
	}
	all.Contents = "<context>\n" + b.String() + "</context>\n\n"
	return all, nil
}

func (t *toolset) consultWith(ctx context.Context, c call, in consultWith) (string, error) {
	q, err := t.question(ctx, c, in.Question, in.Session, in.Context)
	if err != nil {
		return "", err
	}
	if in.Format != "" {
		q.Text += "\n\nWrite the answer like this: " + in.Format
	}
	if name := modelName(in.Agent, in.Model); name != "" {
		if q.Model, err = t.s.opts.FindModel(ctx, c.Turn.Sandbox, name); err != nil {
			return "", err
		}
	}
	if err := t.s.countConsults(c, 1); err != nil {
		return "", err
	}
	answer, err := t.s.opts.Consults.Ask(ctx, q)
	if err != nil {
		return "", fmt.Errorf("%w%s", notAnswered(err), leftOut(answer))
	}
	more := ""
	if answer.Whole != "" {
		more = "; this is its answer in short, ask on for more"
	}
	return fmt.Sprintf("%s\n\n(%s answered; session_id %s%s%s)", answer.Text, answer.Model,
		cmp.Or(in.Session, string(answer.Session)), leftOut(answer), more), nil
}

// leftOut returns a note if a part of the session's history did not fit into the question. Otherwise, it returns "".
func leftOut(a orchestrator.ConsultAnswer) string {
	if a.LeftOut == 0 {
		return ""
	}
	return fmt.Sprintf("; %d earlier entries of the session did not fit and were shortened or left out", a.LeftOut)
}

// groupThink asks several models at the same time. It succeeds if at least two of them answer.
func (t *toolset) groupThink(ctx context.Context, c call, in groupThink) (string, error) {
	if len(in.Models) < 2 || len(in.Models) > orchestrator.GroupMost {
		return "", fmt.Errorf("a group has 2 to %d models", orchestrator.GroupMost)
	}
	q := orchestrator.GroupQuestion{Rounds: 1}
	var err error
	if q.ConsultQuestion, err = t.question(ctx, c, in.Question, in.Session, in.Context); err != nil {
		return "", err
	}
	for _, name := range in.Models {
		m, err := t.s.opts.FindModel(ctx, c.Turn.Sandbox, name)
		if err != nil {
			return "", err
		}
		q.Panel = append(q.Panel, m)
	}
	if err := t.s.countConsults(c, len(in.Models)+1); err != nil {
		return "", err
	}
	all, err := t.s.opts.Consults.Group(ctx, q, func(orchestrator.GroupStep) {})
	if err != nil && !errors.Is(err, orchestrator.ErrNoGroup) {
		return "", notAnswered(err)
	}
	var b strings.Builder
	for _, s := range append(all.Steps, all.Conclusion) {
		switch {
		case s.Model.Agent == "": // all.Conclusion is zero: there is no conclusion
		case s.Err != nil:
			fmt.Fprintf(&b, "## %s did not answer\n\n%v\n\n", s.Model, notAnswered(s.Err))
		case s.Round > 1:
			fmt.Fprintf(&b, "## Conclusion\n\n%s\n\n", s.Answer.Text)
			fmt.Fprintf(&b, "(session_id %s)\n", cmp.Or(in.Session, string(s.Answer.Session)))
		default:
			fmt.Fprintf(&b, "## %s\n\n%s%s\n\n", s.Answer.Model, s.Answer.Text, leftOut(s.Answer))
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w\n\n%s", err, b.String())
	}
	return b.String(), nil
}

// countConsults counts n questions. It returns an error if the turn has asked more than maxConsults.
func (s *Server) countConsults(c call, n int) error {
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

// notAnswered converts the error of a question to an error for the calling agent.
func notAnswered(err error) error {
	switch failure := (*cli.Failure)(nil); {
	case errors.As(err, &failure):
		return fmt.Errorf("%s did not answer: %s", failure.Agent, failure.Kind)
	case errors.Is(err, orchestrator.ErrNoConsult):
		return errors.New("no model was asked in this session yet; name an agent or a model")
	}
	return err
}
