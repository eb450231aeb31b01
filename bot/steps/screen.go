// Package steps implements the button "Steps" below an answer. The button lists the agent's steps in the turn, which
// are uses of tools and changes of files. Users can then open the output or the diff of a step.
package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the first part of the data of all buttons of this package. The data also contains the ID of a turn and the
// number of a step, so the buttons also work after a restart.
const Action = "L"

// Kinds of buttons. A button without a kind sends the list of steps as a new message.
const (
	opPage = 'p'
	opStep = 'n'
	opFile = 'f'
	opArgs = 'a'
)

// Screen shows the steps of turns. It is safe for concurrent use.
type Screen struct {
	Steps orchestrator.Steps // nil if ductor does not store steps
	Lang  *lang.Choices
}

// Button returns the button that lists the steps of a turn.
func Button(p lang.Printer, turn cli.TurnID) tgapi.Button {
	return tgapi.Button{Text: p.Text("steps.button"), Data: data(turn, 0, 0)}
}

func data(turn cli.TurnID, op rune, n int) string {
	what := string(turn)
	if op != 0 {
		what += ":" + string(op) + strconv.Itoa(n)
	}
	d, _ := tgapi.ButtonData(Action, what)
	return d
}

// Press handles a button of this package. messageID identifies the message with the button, and data is the button's
// data without the action.
func (s *Screen) Press(ctx context.Context, in orchestrator.ConversationID, messageID int,
	data string) (tgapi.Answer, error) {
	p := s.Lang.Of(in.Chat)
	id, rest, _ := strings.Cut(data, ":")
	turn := cli.TurnID(id)
	op, n := rune(0), 0
	if rest != "" {
		var ok bool
		if n, ok = tgapi.ButtonNumber(rest[1:]); !ok {
			return tgapi.Stale(p), nil
		}
		op = rune(rest[0])
	}
	if s.Steps == nil {
		return tgapi.Stale(p), nil
	}
	answer, err := s.show(ctx, in, messageID, turn, op, n)
	if errors.Is(err, orchestrator.ErrNoStep) {
		return tgapi.Answer{Text: p.Text("steps.gone")}, nil
	}
	return answer, err
}

func (s *Screen) show(ctx context.Context, in orchestrator.ConversationID, messageID int, turn cli.TurnID, op rune,
	n int) (tgapi.Answer, error) {
	p := s.Lang.Of(in.Chat)
	switch op {
	case 0, opPage:
		text, keyboard, err := s.list(ctx, in, turn, n)
		if err != nil || op == opPage {
			return tgapi.Answer{Formatted: text, Edit: tgapi.Page{Keyboard: keyboard}}, err
		}
		return tgapi.Answer{
			Messages: []orchestrator.Message{
				message.Compose(in, message.Content{Text: text, Keyboard: keyboard, ReplyTo: messageID}),
			},
		}, nil
	case opStep, opFile, opArgs:
		step, err := s.Steps.Step(ctx, in, turn, n)
		switch {
		case err != nil:
			return tgapi.Answer{}, err
		case op == opArgs:
			return s.arguments(in, messageID, step), nil
		case op == opFile || step.Tool == "":
			return s.file(in, messageID, step), nil
		}
		text, keyboard := s.step(p, turn, step)
		return tgapi.Answer{Formatted: text, Edit: tgapi.Page{Keyboard: keyboard}}, nil
	}
	return tgapi.Stale(p), nil
}

// Limits of texts, in UTF-16 code units.
const (
	listedMost  = 360
	commandMost = 1000
	inputMost   = 1000
	outputMost  = 1500
)

// list returns one page of the list of a turn's steps.
func (s *Screen) list(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID,
	page int) (render.Text, tgapi.Keyboard, error) {
	p := s.Lang.Of(in.Chat)
	all, err := s.Steps.StepsOf(ctx, in, turn)
	if err == nil && len(all) == 0 {
		err = orchestrator.ErrNoStep
	}
	if err != nil {
		return render.Text{}, nil, fmt.Errorf("list steps: %w", err)
	}
	from, to, pager := tgapi.Paged(p, page, len(all), func(page int) string { return data(turn, opPage, page) })
	parts := []render.Text{render.Styled(render.Bold, p.Text("steps.title", len(all)))}
	var keyboard tgapi.Keyboard
	for i, step := range all[from:to] {
		parts = append(parts, render.Plain("\n"+strconv.Itoa(step.Number)+" "), s.line(p, step, listedMost))
		if i%4 == 0 {
			keyboard = append(keyboard, nil)
		}
		last := &keyboard[len(keyboard)-1]
		*last = append(*last, tgapi.Button{Text: strconv.Itoa(step.Number), Data: data(turn, opStep, step.Number)})
	}
	return render.AsMessage(render.Concat(parts...)), append(keyboard, pager...), nil
}

// line describes a step in one line. limit is the maximum length of the step's title.
func (s *Screen) line(p lang.Printer, step orchestrator.Step, limit int) render.Text {
	title := render.Styled(render.Code, render.ShortLine(step.Title, limit))
	if step.Tool == "" {
		return render.Concat(render.Plain(render.ChangeSign(step.Change)+" "), title)
	}
	sign := "✓ "
	switch ended := (cli.ToolEnded{Err: step.Err, ExitCode: step.ExitCode}); {
	case ended.Failed():
		sign = "✗ "
	case step.Err != "":
		sign = "• "
	}
	name := render.Plain(sign + render.ShortLine(render.ToolName(p, step.Tool), render.NameLimit))
	if title.Text != "" {
		name = render.Concat(name, render.Plain(" "), title)
	}
	return render.Concat(name, render.Plain(s.result(p, step)))
}

// result returns a text about how a tool has ended.
func (s *Screen) result(p lang.Printer, step orchestrator.Step) string {
	line := ""
	switch {
	case step.ExitCode != nil && *step.ExitCode != 0:
		line = " · " + p.Text("card.tool-exit", *step.ExitCode)
	case step.Err != "" && step.Err != cli.ToolUntold:
		line = " · " + render.ShortLine(cli.ToolErrorText(p, step.Err), 120)
	}
	if step.Duration > 0 {
		line += " · " + p.Elapsed(step.Duration)
	}
	return line
}

// step returns the page of a tool, with the whole command and the end of its output.
func (s *Screen) step(p lang.Printer, turn cli.TurnID, step orchestrator.Step) (render.Text, tgapi.Keyboard) {
	bare := step
	bare.Title = ""
	parts := []render.Text{s.line(p, bare, 0)}
	if step.Title != "" {
		parts = append(parts, render.Plain("\n"), render.CodeBlock("", render.ShortenPlain(step.Title, commandMost)))
	}
	var keyboard tgapi.Keyboard
	if in := inputText(step.Input, step.Title); in != "" {
		short := render.ShortenPlain(in, inputMost)
		parts = append(parts, render.Plain("\n"), render.Styled(render.Expandable, short))
		if short != in {
			keyboard = append(keyboard, []tgapi.Button{
				{Text: p.Text("steps.arguments"), Data: data(turn, opArgs, step.Number)},
			})
		}
	}
	if out := strings.TrimSpace(step.Output); out != "" {
		parts = append(parts, render.Plain("\n"), render.Styled(render.Expandable, render.LastLines(out, outputMost)))
		keyboard = append(keyboard, []tgapi.Button{
			{Text: p.Text("steps.whole"), Data: data(turn, opFile, step.Number)},
		})
	} else {
		parts = append(parts, render.Plain("\n"), render.Styled(render.Italic, p.Text("steps.no-output")))
	}
	back := tgapi.Button{Text: p.Text("common.back"), Data: data(turn, opPage, tgapi.PageOf(step.Number-1))}
	return render.AsMessage(render.Concat(parts...)), append(keyboard, []tgapi.Button{back})
}

// inputText returns the arguments of a tool, one per line. It omits the argument that the step's title shows.
func inputText(input, title string) string {
	var lines []string
	for _, l := range cli.Leaves(json.RawMessage(input)) {
		if l.Value != title {
			lines = append(lines, l.Name+": "+l.Value)
		}
	}
	return strings.Join(lines, "\n")
}

// arguments returns an answer that sends the arguments of a tool as a file.
func (s *Screen) arguments(in orchestrator.ConversationID, messageID int, step orchestrator.Step) tgapi.Answer {
	p := s.Lang.Of(in.Chat)
	if step.Input == "" {
		return tgapi.Answer{Text: p.Text("steps.nothing-kept")}
	}
	return tgapi.Answer{Messages: []orchestrator.Message{message.Compose(in, message.Content{
		Text: s.line(p, step, listedMost), ReplyTo: messageID,
		Files: []message.File{{
			Name: "step-" + strconv.Itoa(step.Number) + "-arguments.txt", Content: inputText(step.Input, ""),
		}},
	})}}
}

// file returns an answer that sends the output of a tool, or the diff of a changed file, as a file.
func (s *Screen) file(in orchestrator.ConversationID, messageID int, step orchestrator.Step) tgapi.Answer {
	p := s.Lang.Of(in.Chat)
	if strings.TrimSpace(step.Output) == "" {
		return tgapi.Answer{Text: p.Text("steps.nothing-kept")}
	}
	name, content := "step-"+strconv.Itoa(step.Number)+".txt", step.Output
	if step.Tool == "" {
		name = path.Base(step.Title) + ".diff"
		content = "--- a/" + step.Title + "\n+++ b/" + step.Title + "\n" + content
	}
	caption := s.line(p, step, listedMost)
	if step.Lost > 0 {
		caption = render.Concat(caption, render.Plain("\n"+p.Text("steps.lost", step.Lost>>10)))
	}
	return tgapi.Answer{Messages: []orchestrator.Message{message.Compose(in, message.Content{
		Text: caption, ReplyTo: messageID, Files: []message.File{{Name: name, Content: content}},
	})}}
}
