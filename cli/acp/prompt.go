package acp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
)

// maxImage is the maximum size of a picture, in bytes.
const maxImage = 20 << 20

// prepare applies the settings of req to the session and returns the prompt.
func (s *session) prepare(ctx context.Context, req cli.Request) ([]toolcall.Block, note, error) {
	blocks, err := s.blocks(req)
	if err == nil {
		err = cmp.Or( // check again: the project's settings may have changed
			s.options().checkProject(req), s.process.checkShown(req, s.process.provider.ProjectFiles()))
	}
	if err == nil {
		err = s.setModel(ctx, req)
	}
	if err == nil {
		err = s.setMode(ctx, req)
	}
	if err != nil {
		return nil, note{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Task == cli.TaskPrompt {
		s.past.instructed = req.Instructions()
	}
	n := note{
		Session: string(s.id), Model: s.offers.model.current, Name: s.process.hello.AgentInfo.Name, Spent: s.past.spent,
	}
	if s.options().quirks.Usage.Total {
		n.Totals = s.past.totals
	}
	return blocks, n, nil
}

// setModel sets the model and the effort of the session. If req names no model or no effort, setModel sets the one that
// the agent originally chose.
func (s *session) setModel(ctx context.Context, req cli.Request) error {
	model := cmp.Or(string(req.Model), s.offersNow().model.original)
	if err := s.choose(ctx, forModel, model); err != nil {
		f := s.options().failure(err)
		if f.Kind == cli.UnknownFailure || f.Kind == cli.Refused {
			f.Kind = cli.UnknownModel
		}
		return f
	}
	effort := s.offersNow().effort // the effort depends on the model that was just set
	level := cmp.Or(string(req.Effort), effort.original)
	switch {
	case effort.offers(level):
		return s.choose(ctx, forEffort, level)
	case req.Effort == "":
		return nil
	}
	return cli.Failf(cli.Refused, s.options().Agent, "its model %s has no effort %q; it has: %s", model, level,
		strings.Join(effort.ids(), ", "))
}

// blocks returns the prompt in the protocol's format. The protocol has no field for system prompts. blocks therefore
// puts them before the prompt's text, unless the session already contains them.
func (s *session) blocks(req cli.Request) ([]toolcall.Block, error) {
	agent := s.options().Agent
	text := req.Prompt
	if req.Task != cli.TaskPrompt {
		return s.command(req)
	}
	if f := req.Unsendable(agent); f != nil {
		return nil, f
	}
	s.mu.Lock()
	instructed := s.past.instructed
	s.mu.Unlock()
	if rules := req.Instructions(); rules != instructed {
		text = rules + text
	}
	blocks := []toolcall.Block{}
	if text != "" {
		blocks = append(blocks, toolcall.Block{Type: "text", Text: AsText(text, s.options().quirks.CommandMarks)})
	}
	for _, image := range req.Images {
		b, err := imageBlock(image)
		if err != nil {
			return nil, cli.Failf(cli.Refused, agent, "read a picture: %v", err)
		}
		blocks = append(blocks, b)
	}
	if cli.HasMention(text) {
		blocks = append(blocks, toolcall.Block{Type: "text", Text: cli.EndOfMessage})
	}
	return blocks, nil
}

// command returns one of the agent's own commands as a prompt. Agents require the command at the start of the prompt.
func (s *session) command(req cli.Request) ([]toolcall.Block, error) {
	text := req.Prompt
	if req.Task == cli.TaskCompact {
		name := s.compaction()
		if name == "" {
			return nil, cli.CannotCompact(s.options().Agent)
		}
		text = strings.TrimSpace(name + " " + text)
	}
	return []toolcall.Block{{Type: "text", Text: text}}, nil
}

// compaction returns the name of the agent's command that shortens the context, or "" if the agent offers none.
func (s *session) compaction() string {
	for _, c := range s.offersNow().commands {
		if name := c.Name; name == "/compact" || name == "/compress" || name == "/summarize" {
			return name
		}
	}
	return ""
}

func (s *session) Commands(context.Context) ([]cli.AgentCommand, error) {
	return slices.Clone(s.offersNow().commands), nil
}

// wordJoiner is an invisible character that AsText puts before a prompt. Agents do not trim this character, because it
// is not white space.
const wordJoiner = "\u2060"

// AsText prevents the agent from treating a prompt as a command. If the prompt starts with a character in marks, AsText
// puts an invisible character before the prompt.
func AsText(prompt, marks string) string {
	begin := strings.TrimSpace(prompt)
	if begin != "" && strings.ContainsAny(begin[:1], marks) {
		return wordJoiner + prompt
	}
	return prompt
}

func imageBlock(image cli.Image) (toolcall.Block, error) {
	data, err := image.Base64(maxImage)
	return toolcall.Block{Type: "image", MIME: image.MIME, Data: data}, err
}
