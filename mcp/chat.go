package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

func (t *toolset) register() {
	t.addChat()
	t.addSessions()
	t.addProject()
	t.addSchedule()
	t.addConsult()
	t.addWork()
}

// Limits of messages and questions. Sizes are in bytes.
const (
	maxMessage  = 32 << 10 // size of a message
	maxSent     = 64 << 10 // size of all messages of a turn
	maxQuestion = 3000     // size of a question to the user
	maxOptions  = 10
	maxOption   = 60 // size of an answer that the user can choose; it becomes the text of a button
	maxCaption  = 1000
)

type sendMessage struct {
	Text string `json:"text" jsonschema:"the message, in Markdown"`
}

type askUser struct {
	Question string   `json:"question" jsonschema:"what the user is asked"`
	Options  []string `json:"options,omitempty" jsonschema:"answers that the user can choose by a button, 60 characters each at most; none: the user writes an answer"`
	Multiple bool     `json:"multiple,omitempty" jsonschema:"several options can be chosen"`
	Only     bool     `json:"only_options,omitempty" jsonschema:"the user cannot answer in own words"`
}

func (t *toolset) addChat() {
	shows := "while you work on. Your answer is shown there anyway: do not repeat it."
	if t.caller.isOutside() {
		shows = "which does not show what you answer."
	}
	registerTool(t, "send_message", "Send a message to the user's chat now, "+shows,
		func(in sendMessage) string { return in.Text }, t.sendMessage)
	registerTool(t, "send_file",
		"Send a file of the project into the chat; a picture is shown as one.",
		func(in sendFile) string { return in.Path }, t.sendFile)
	t.addAskUser("ask_user")
}

func (t *toolset) addAskUser(name string) {
	registerTool(t, name, "Ask the user a question in the chat and wait for the answer. Options become buttons.",
		func(in askUser) string { return in.Question }, t.askUser)
}

// adapt adds the tool ask_user under another name for Gemini. Gemini has its own tool ask_user and therefore ignores a
// tool of an MCP server with this name. When ductor runs Gemini, Gemini cannot use its own tool.
func (t *toolset) adapt(client *sdk.InitializeParams) {
	if client != nil && client.ClientInfo != nil && strings.Contains(client.ClientInfo.Name, "gemini") {
		t.addAskUser("ask_the_user")
	}
}

func (t *toolset) sendMessage(ctx context.Context, c call, in sendMessage) (string, error) {
	switch n := len(in.Text); {
	case strings.TrimSpace(in.Text) == "":
		return "", errors.New("the text is empty")
	case n > maxMessage:
		return "", fmt.Errorf("the text has %d bytes, and %d are the limit of a message; send a file instead", n,
			maxMessage)
	}
	if err := t.s.countSent(c, len(in.Text)); err != nil {
		return "", err
	}
	if err := t.s.opts.Chat.SendFor(ctx, shown(c), byline(c, "\n\n")+c.Hide(in.Text)); err != nil {
		return "", fmt.Errorf("send a message: %w", err)
	}
	return "It is on its way to the chat.", nil
}

// countSent counts a message of n bytes. It returns an error if the messages of the turn together exceed maxSent.
func (s *Server) countSent(c call, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.calls[c.Turn.Prompt.Conversation]
	if made.sent+n > maxSent {
		return fmt.Errorf("%s sent %d bytes of messages, and %d are the limit; put what is long into a "+
			"file and send that", has(c), made.sent, maxSent)
	}
	made.sent += n
	s.calls[c.Turn.Prompt.Conversation] = made
	return nil
}

func (t *toolset) askUser(ctx context.Context, c call, in askUser) (string, error) {
	switch {
	case strings.TrimSpace(in.Question) == "":
		return "", errors.New("the question is empty")
	case len(in.Question) > maxQuestion:
		return "", fmt.Errorf("the question has %d bytes, and %d are the limit", len(in.Question), maxQuestion)
	case len(in.Options) > maxOptions:
		return "", fmt.Errorf("there are %d options, and %d are the limit", len(in.Options), maxOptions)
	}
	q := cli.Question{Text: in.Question, Multi: in.Multiple, Free: !in.Only || len(in.Options) == 0}
	for _, o := range in.Options {
		if strings.TrimSpace(o) == "" || len(o) > maxOption {
			return "", fmt.Errorf("the option %q does not fit a button: it has 1 to %d bytes",
				cli.Shorten(o, maxOption), maxOption)
		}
		q.Options = append(q.Options, cli.Option{Label: o})
	}
	d, err := t.s.opts.Turns.AskUser(ctx, c.Turn.ID,
		cli.QuestionAsked{Tool: Name + ".ask_user", Questions: []cli.Question{q}})
	switch {
	case err != nil:
		return "", fmt.Errorf("ask the user: %w", err)
	case !d.Allow:
		return strings.TrimSpace("The user did not answer. " + d.Reason), nil
	}
	return strings.Join(d.Answers[0], "\n"), nil
}

type sendFile struct {
	Path    string `json:"path" jsonschema:"the file, absolute or below the project"`
	Caption string `json:"caption,omitempty" jsonschema:"a text below the file"`
}

// sendFile sends a file of the project to the chat. A second call sends the file again.
func (t *toolset) sendFile(ctx context.Context, c call, in sendFile) (string, error) {
	place, err := t.s.opts.Place(ctx, c.Turn)
	if err != nil {
		return "", fmt.Errorf("find the project: %w", err)
	}
	file := orchestrator.OutFile{Path: in.Path,
		Caption: strings.TrimSpace(byline(c, " ") + c.Hide(cli.Shorten(in.Caption, maxCaption)))}
	refused, err := t.s.opts.Files.SendFiles(ctx, shown(c).Prompt.Conversation, place, "mcp/"+t.s.opts.NewID(),
		[]orchestrator.OutFile{file})
	switch {
	case err != nil:
		return "", fmt.Errorf("send a file: %w", err)
	case len(refused) > 0:
		return "", errors.New(refused[0].Sentence(lang.Printer{}))
	}
	return "It is on its way to the chat.", nil
}
