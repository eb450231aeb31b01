// Package display asks the users of a chat whether they can see rich messages, which have tables and headings. Old
// Telegram apps cannot show such messages, and bots cannot find out which app a user has. The package asks each chat
// only once.
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

// Action is the action of the buttons "yes" and "no".
const Action = "D"

// Data of the buttons.
const (
	sees    = "y"
	seesNot = "n"
)

// Service stores the display modes of chats. *conversation.Engine implements it.
type Service interface {
	Display(ctx context.Context, in orchestrator.ConversationID) (orchestrator.DisplayMode, error)
	SetDisplay(ctx context.Context, in orchestrator.ConversationID, mode orchestrator.DisplayMode) error
}

// Screen asks the question and handles the answer. It does not ask before Attach. It is safe for concurrent use.
type Screen struct {
	messages *message.Messages
	lang     *lang.Choices

	mu      sync.Mutex
	service Service
}

// New returns a Screen.
func New(messages *message.Messages, p *lang.Choices) *Screen {
	return &Screen{messages: messages, lang: p}
}

// Attach sets the service that stores the display modes.
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

// RichWouldHelp implements card.Displays. It sends its question only once to a chat, even if several goroutines call
// RichWouldHelp at the same time.
func (s *Screen) RichWouldHelp(ctx context.Context, in orchestrator.ConversationID) error {
	service := s.attached()
	if service == nil {
		return nil // without the service, the chat cannot be asked; card.Cards calls again for the next answer
	}
	mode, err := service.Display(ctx, in)
	if err != nil || mode != orchestrator.DisplayAsk {
		return err
	}
	if err := s.messages.PostOnce(ctx, in, fmt.Sprint("display/", in.Chat),
		s.question(s.lang.Of(in.Chat))); err != nil {
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

// Press handles a button of the question. data is the button's data without the action. Press returns a short notice
// for the user.
func (s *Screen) Press(ctx context.Context, in orchestrator.ConversationID, data string) (string, error) {
	mode, short := orchestrator.DisplayRich, lang.Key("display.rich")
	switch data {
	case sees:
	case seesNot:
		mode, short = orchestrator.DisplayPlain, "display.plain"
	default:
		return s.lang.Of(in.Chat).Text("common.stale-button"), nil
	}
	if err := s.attached().SetDisplay(ctx, in, mode); err != nil {
		return "", fmt.Errorf("store the display mode: %w", err)
	}
	return s.lang.Of(in.Chat).Text(short), nil
}

// RichUnsupported implements card.Displays. From now on, the chat gets plain messages.
func (s *Screen) RichUnsupported(ctx context.Context, in orchestrator.ConversationID) error {
	service := s.attached()
	if service == nil {
		return nil // Attach was not called yet; a later card calls RichUnsupported again
	}
	return service.SetDisplay(ctx, in, orchestrator.DisplayPlain)
}
