package acp

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"ductor/cli"
)

// maxImage is the largest picture that is sent, in bytes.
const maxImage = 20 << 20

// prepare makes the agent ready for req and gives its prompt. Errors are a *cli.Failure or those of
// agentProcess.call.
func (s *session) prepare(ctx context.Context, req cli.Request) ([]block, note, error) {
	blocks, err := s.blocks(req)
	if err != nil {
		return nil, note{}, err
	}
	if err := s.setModel(ctx, req.Model); err != nil {
		return nil, note{}, err
	}
	if err := s.setMode(ctx, req.Permission); err != nil {
		return nil, note{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instructed = instructions(req)
	n := note{Session: string(s.id), Model: s.model, Name: s.process.hello.AgentInfo.Name}
	if s.process.quirks.TotalUsage {
		n.Totals = s.totals
	}
	return blocks, n, nil
}

// setModel makes the session use a model; an empty one is the agent's own choice.
func (s *session) setModel(ctx context.Context, model cli.ModelID) error {
	s.mu.Lock()
	want, have := string(model), s.model
	if want == "" {
		want = s.ownModel
	}
	s.mu.Unlock()
	if want == have {
		return nil
	}
	err := s.process.call(ctx, methodSetModel, modelParams{string(s.id), want}, nil)
	if err != nil {
		f := s.provider.failure(err)
		if f.Kind == cli.UnknownFailure || f.Kind == cli.Refused {
			f.Kind = cli.UnknownModel
		}
		return f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = want
	return nil
}

// setMode puts the session into the mode that a permission mode becomes.
func (s *session) setMode(ctx context.Context, mode cli.PermissionMode) error {
	s.mu.Lock()
	offered := make([]string, 0, len(s.modes))
	for _, m := range s.modes {
		offered = append(offered, m.ID)
	}
	want, have := Permission(mode, offered).AgentMode, s.mode
	s.mu.Unlock()
	if want == "" || want == have {
		return nil
	}
	if err := s.process.call(ctx, methodSetMode, modeParams{string(s.id), want}, nil); err != nil {
		f := s.provider.failure(err)
		f.Reason = fmt.Sprintf("its permission mode cannot be set to %s: %s", want, f.Reason)
		return f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = want
	return nil
}

// blocks is the prompt as the protocol has it.
func (s *session) blocks(req cli.Request) ([]block, error) {
	agent := s.provider.opts.Agent
	text := req.Prompt
	switch {
	case strings.TrimSpace(text) == "" && len(req.Images) == 0:
		return nil, cli.Failf(cli.Refused, agent, "the message is empty")
	case !utf8.ValidString(text):
		return nil, cli.Failf(cli.Refused, agent, "the message holds bytes that are no text")
	case len(req.Images) > 0 && !s.process.caps.Prompt.Image:
		return nil, cli.Failf(cli.Refused, agent, "it takes no pictures")
	}
	s.mu.Lock()
	instructed := s.instructed
	s.mu.Unlock()
	if rules := instructions(req); rules != "" && rules != instructed {
		text = rules + "\n\n" + text
	}
	blocks := []block{}
	if text != "" {
		blocks = append(blocks, block{Type: "text", Text: s.provider.plain(text)})
	}
	for _, image := range req.Images {
		b, err := imageBlock(image)
		if err != nil {
			return nil, cli.Failf(cli.Refused, agent, "%v", err)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// wordJoiner shows nothing, and is no white space that an agent would cut off.
const wordJoiner = "\u2060"

// plain makes sure that a text reaches the model as text, whatever it begins with.
func (p *Provider) plain(text string) string {
	begin := strings.TrimSpace(text)
	if begin != "" && strings.ContainsAny(begin[:1], p.opts.Quirks.CommandMarks) {
		return wordJoiner + text
	}
	return text
}

// instructions merges the system prompts into the conversation: the protocol has no place for them.
func instructions(req cli.Request) string {
	var parts []string
	for _, part := range []string{req.SystemPrompt, req.AppendPrompt} {
		if part != "" {
			parts = append(parts, "<instructions>\n"+part+"\n</instructions>")
		}
	}
	return strings.Join(parts, "\n\n")
}

func imageBlock(image cli.Image) (block, error) {
	info, err := os.Stat(image.Path)
	if err != nil {
		return block{}, fmt.Errorf("read a picture: %w", err)
	}
	if info.Size() > maxImage {
		return block{}, fmt.Errorf("a picture of %d MB is too large", info.Size()>>20)
	}
	data, err := os.ReadFile(image.Path)
	if err != nil {
		return block{}, fmt.Errorf("read a picture: %w", err)
	}
	return block{Type: "image", MIME: image.MIME, Data: base64.StdEncoding.EncodeToString(data)}, nil
}
