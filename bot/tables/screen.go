// Package tables implements the buttons below an answer that contains tables. They send the tables as pictures, in a
// light or a dark theme.
package tables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/bot/message"
	"ductor/bot/picture"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the first part of the data of all buttons of this package. The data also contains a theme and the ID of a
// turn, so the buttons also work after a restart.
const Action = "T"

// maxPictures is the maximum number of tables that a button sends. An album cannot contain more pictures.
const maxPictures = 10

// Answers finds the answers of turns.
type Answers interface {
	// AnswerOf returns the agent's answer in a turn of a conversation. It returns ErrElsewhere if the turn belongs to
	// another conversation.
	AnswerOf(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (string, error)
}

// Screen sends tables as pictures. It is safe for concurrent use.
type Screen struct {
	Answers  Answers
	Messages *message.Messages
	Spool    *message.Spool // if nil, no pictures are sent
	Scrub    *tgapi.Scrubber
	Lang     *lang.Choices
}

// Row returns the buttons for an answer with tables. It returns nil for an answer without tables.
func Row(p lang.Printer, turn cli.TurnID, answer string) []tgapi.Button {
	if !strings.Contains(answer, "|") || len(render.Tables(answer)) == 0 {
		return nil
	}
	button := func(key lang.Key, theme string) tgapi.Button {
		return tgapi.NewButton(p.Text(key), Action, theme+":"+string(turn))
	}
	return []tgapi.Button{button("tables.light", "l"), button("tables.dark", "d")}
}

// Press handles a button of this package. messageID identifies the message with the button, and data is the button's
// data without the action.
func (s *Screen) Press(ctx context.Context, in orchestrator.ConversationID, messageID int,
	data string) (tgapi.Answer, error) {
	p := s.Lang.Of(in.Chat)
	name, turn, _ := strings.Cut(data, ":")
	theme, known := picture.ThemeOf(name)
	if !known || s.Spool == nil {
		return tgapi.Stale(p), nil
	}
	answer, err := s.Answers.AnswerOf(ctx, in, cli.TurnID(turn))
	if err != nil {
		return tgapi.Answer{}, fmt.Errorf("find the tables of an answer: %w", err)
	}
	found := render.Tables(s.Scrub.String(answer))
	if len(found) == 0 {
		return tgapi.Stale(p), nil
	}
	key := fmt.Sprint("table/", name, "/", turn)
	if sent, err := s.Messages.Composed(ctx, key); err != nil || sent {
		return tgapi.Answer{Text: p.Text("tables.sent")}, err
	}
	content := message.Content{ReplyTo: messageID, Silent: true}
	for i, t := range found[:min(len(found), maxPictures)] {
		file, err := s.picture(theme, i+1, t)
		if errors.Is(err, picture.ErrTooLarge) {
			continue
		}
		if err != nil {
			s.Spool.Forget(content.Files...)
			return tgapi.Answer{}, err
		}
		content.Files = append(content.Files, file)
	}
	if len(content.Files) == 0 {
		return tgapi.Answer{Text: p.Text("tables.too-large")}, nil
	}
	return tgapi.Answer{Messages: []orchestrator.Message{message.ComposeFiles(in, key, 0, content)}}, nil
}

func (s *Screen) picture(theme picture.Theme, n int, t render.Table) (message.File, error) {
	drawn, err := Draw(theme, t)
	if err != nil {
		return message.File{}, fmt.Errorf("draw a table: %w", err)
	}
	name, err := s.Spool.Put(drawn)
	if err != nil {
		return message.File{}, err
	}
	return message.File{Name: fmt.Sprintf("table-%d.png", n), Spooled: name, Picture: true}, nil
}
