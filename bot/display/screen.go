// Package display asks a chat once whether it sees rich messages, of which Telegram does not say who does.
package display

import (
	"context"
	"fmt"
	"sync"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the action of the two buttons of the question.
const Action = "D"

// What the buttons say.
const (
	sees    = "y"
	seesNot = "n"
)

// Service keeps what chats see; see orchestrator/conversation.
type Service interface {
	Display(ctx context.Context, in orchestrator.ConversationID) (orchestrator.DisplayMode, error)
	SetDisplay(ctx context.Context, in orchestrator.ConversationID, mode orchestrator.DisplayMode) error
}

// Screen asks and takes the answer. It asks nothing before Attach. Safe for concurrent use.
type Screen struct {
	messages *message.Messages
	lang     *lang.Choices

	asking  sync.Mutex // one question at a time
	mu      sync.Mutex
	service Service
}

// New makes a Screen.
func New(messages *message.Messages, p *lang.Choices) *Screen {
	return &Screen{messages: messages, lang: p}
}

// Attach gives what keeps the answers.
func (s *Screen) Attach(service Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service = service
}

func (s *Screen) attached() Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service
}

// Gains implements card.Displays: it asks the chat, unless that was asked before.
func (s *Screen) Gains(ctx context.Context, in orchestrator.ConversationID) error {
	service := s.attached()
	if service == nil {
		return nil // the next answer asks
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	mode, err := service.Display(ctx, in)
	if err != nil || mode != orchestrator.DisplayAsk {
		return err
	}
	if err := s.messages.PostOnce(ctx, in, fmt.Sprint("display/", in.Chat), s.question(s.lang.Of(in.Chat))); err != nil {
		return fmt.Errorf("ask what a chat sees: %w", err)
	}
	return service.SetDisplay(ctx, in, orchestrator.DisplayAsked)
}

func (*Screen) question(p lang.Printer) message.Content {
	text := func(key lang.Key) render.Text { return render.Plain(p.Text(key)) }
	cell := func(t string, header bool) render.Cell {
		return render.Cell{Text: render.Plain(t), Header: header, Align: "left"}
	}
	row := func(header bool, texts ...string) (cells []render.Cell) {
		for _, t := range texts {
			cells = append(cells, cell(t, header))
		}
		return cells
	}
	button := func(key lang.Key, what string) []tgapi.Button {
		return []tgapi.Button{tgapi.NewButton(p.Text(key), Action, what)}
	}
	return message.Content{
		Text: text("display.question"), Silent: true, OnlyRich: true,
		Rich: []render.Block{
			{Kind: render.TableOf, Rows: [][]render.Cell{
				row(true, p.Text("display.tree"), p.Text("display.age")),
				row(false, p.Text("display.oak"), "800"), row(false, p.Text("display.yew"), "3000"),
			}},
			{Kind: render.Paragraph, Text: text("display.question")},
		},
		Keyboard: tgapi.Keyboard{button("display.sees", sees), button("display.sees-not", seesNot)},
	}
}

// Press takes the answer, and gives the short answer to the press.
func (s *Screen) Press(ctx context.Context, in orchestrator.ConversationID, what string) (string, error) {
	mode, short := orchestrator.DisplayRich, lang.Key("display.rich")
	switch what {
	case sees:
	case seesNot:
		mode, short = orchestrator.DisplayPlain, "display.plain"
	default:
		return s.lang.Of(in.Chat).Text("common.stale-button"), nil
	}
	if err := s.attached().SetDisplay(ctx, in, mode); err != nil {
		return "", fmt.Errorf("keep what a chat sees: %w", err)
	}
	return s.lang.Of(in.Chat).Text(short), nil
}

// TooOld implements card.Displays: the chat has plain messages from now on.
func (s *Screen) TooOld(ctx context.Context, in orchestrator.ConversationID) error {
	service := s.attached()
	if service == nil {
		return nil // the next card learns it too
	}
	return service.SetDisplay(ctx, in, orchestrator.DisplayPlain)
}
