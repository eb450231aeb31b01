// Package agent implements the commands /context, /compact and /cmd, and the buttons that log in agents. The commands
// show how full the context of the conversation's agent is, compact this context, and run commands that the agent
// itself provides.
package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the action of all buttons of a Screen. Their data also contains a page number or the hash of a command's
// name, so that the buttons work after a restart.
const Action = "K"

// Service provides the functions of agents. *conversation.Engine implements it.
type Service interface {
	// Context returns the size of the agent's context and how much of it is used, as far as the agent reports them.
	Context(ctx context.Context, in orchestrator.ConversationID) (orchestrator.ContextReport, error)
	// Compact shortens the context in a separate turn. The hint describes the content that the agent should keep. It
	// may be empty.
	Compact(ctx context.Context, hint string, p orchestrator.Prompt) (orchestrator.Receipt, error)
	// AgentCommands returns the commands and skills of the conversation's agent. It returns errors.ErrUnsupported if
	// the agent cannot list them.
	AgentCommands(ctx context.Context, in orchestrator.ConversationID) (cli.Agent, []cli.AgentCommand, error)
	// RunCommand runs a command or a skill in a separate turn.
	RunCommand(ctx context.Context, p orchestrator.Prompt) (orchestrator.Receipt, error)
}

// Screen implements /context, /compact and /cmd. It is safe for concurrent use.
type Screen struct {
	Service Service
	Lang    *lang.Choices
}

// Answer is the answer to a command or a button.
type Answer struct {
	tgapi.Answer
	Handled bool // the command started a turn; ductor has already marked the command's updates as handled
}

func textAnswer(text string) Answer {
	return Answer{Answer: tgapi.Answer{Edit: tgapi.Page{Text: text}, Text: text}}
}

// Context handles "/context". It shows how full the agent's context is, and what the session has cost.
func (s *Screen) Context(ctx context.Context, by orchestrator.Press, _ string) (tgapi.Page, error) {
	r, err := s.Service.Context(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	p := s.Lang.Of(by.Conversation.Chat)
	lines := []string{p.Text("agent.context", render.ChoiceText(p, r.Agent, r.Model, ""))}
	switch f := r.Fill; {
	case r.Session.ID == "":
		lines = append(lines, p.Text("agent.context-none"))
	case f.Used == 0:
		lines = append(lines, p.Text("agent.context-unknown", render.AgentName(p, r.Agent)))
	default:
		lines = append(lines, s.fillLines(p, f)...)
	}
	if r.Session.Totals.CostUSD > 0 {
		lines = append(lines, p.Text("agent.cost", p.Cost(r.Session.Totals.CostUSD)))
	}
	if r.Session.Totals.Tokens > 0 {
		lines = append(lines, p.Text("agent.tokens", p.Tokens(r.Session.Totals.Tokens)))
	}
	page := tgapi.Page{Text: strings.Join(lines, "\n")}
	if r.Fill.Used > 0 {
		page.Keyboard = tgapi.Keyboard{{s.button(p.Text("agent.compact"), opCompact, "")}}
	}
	return page, nil
}

const barWidth = 20

// fillLines describes how full a context is, and lists its parts, largest first.
func (s *Screen) fillLines(p lang.Printer, f cli.Fill) []string {
	percent, known := f.Percent()
	if !known {
		return []string{p.Text("agent.used", p.Tokens(f.Used))}
	}
	full := min(max(percent*barWidth/100, 1), barWidth)
	lines := []string{
		strings.Repeat("█", full) + strings.Repeat("░", barWidth-full),
		p.Text("agent.used-of", p.Tokens(f.Used), p.Tokens(f.Limit), percent),
	}
	parts := slices.Clone(f.Parts)
	slices.SortStableFunc(parts, func(a, b cli.FillPart) int { return int(b.Tokens - a.Tokens) })
	for i, part := range parts {
		if i == 0 {
			lines = append(lines, "")
		}
		if part.Tokens > 0 {
			lines = append(lines, p.Text("agent.part", render.ShortLine(part.Name, 40), p.Tokens(part.Tokens)))
		}
	}
	if len(parts) > 0 {
		lines = append(lines, "")
	}
	return lines
}

// Compact handles "/compact". The text after the command is a hint for the agent: it describes the content to keep.
func (s *Screen) Compact(ctx context.Context, hint string, p orchestrator.Prompt) (Answer, error) {
	receipt, err := s.Service.Compact(ctx, hint, p)
	return s.turnAnswer(s.Lang.Of(p.Conversation.Chat), receipt, err)
}

// turnAnswer returns the answer to a command that submitted a turn. The answer is empty if the turn starts at once,
// because the user then sees the messages of the turn.
func (s *Screen) turnAnswer(p lang.Printer, r orchestrator.Receipt, err error) (Answer, error) {
	switch {
	case err != nil:
		return Answer{}, err
	case r.Full:
		return textAnswer(p.Text("bot.queue-full")), nil
	case r.Ahead > 0:
		return Answer{tgapi.Answer{Text: p.Text("bot.again-queued", r.Ahead)}, true}, nil
	}
	return Answer{Handled: true}, nil
}

// Commands handles "/cmd". If args begins with the name of a command, Commands runs this command with the rest of args.
// If args is empty, it lists the commands.
func (s *Screen) Commands(ctx context.Context, args string, p orchestrator.Prompt) (Answer, error) {
	say := s.Lang.Of(p.Conversation.Chat)
	args = strings.TrimSpace(args)
	agent, list, err := s.list(ctx, p.Conversation)
	if err != nil {
		return s.refused(say, agent, err)
	}
	if args == "" {
		return Answer{Answer: s.page(say, agent, list, 0)}, nil
	}
	name, rest, _ := strings.Cut(args, " ")
	for _, c := range list {
		if strings.EqualFold(strings.TrimLeft(name, "/$"), strings.TrimLeft(c.Name, "/$")) {
			p.Text = strings.TrimSpace(c.Name + " " + strings.TrimSpace(rest))
			receipt, err := s.Service.RunCommand(ctx, p)
			return s.turnAnswer(say, receipt, err)
		}
	}
	return textAnswer(say.Text("agent.no-such-command", render.AgentName(say, agent), render.Cut(name, 60))), nil
}

// list returns the commands of the agent, sorted by name.
func (s *Screen) list(ctx context.Context, in orchestrator.ConversationID) (cli.Agent, []cli.AgentCommand, error) {
	agent, list, err := s.Service.AgentCommands(ctx, in)
	if err != nil {
		return agent, nil, err
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b cli.AgentCommand) int { return strings.Compare(a.Name, b.Name) })
	return agent, list, nil
}

func (s *Screen) refused(p lang.Printer, agent cli.Agent, err error) (Answer, error) {
	var failure *cli.Failure
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return textAnswer(p.Text("agent.no-commands", render.AgentName(p, agent))), nil
	case errors.As(err, &failure):
		return textAnswer(failure.Sentence(p)), nil
	}
	return Answer{}, err
}

// maxDescription is the maximum length of a command's description in characters.
const maxDescription = 100

// page returns one page of the list of commands.
func (s *Screen) page(p lang.Printer, agent cli.Agent, list []cli.AgentCommand, page int) tgapi.Answer {
	if len(list) == 0 {
		return tgapi.Answer{Edit: tgapi.Page{Text: p.Text("agent.no-commands", render.AgentName(p, agent))}}
	}
	from, to, pager := tgapi.Paged(p, page, len(list), func(page int) string {
		return s.button("", opPage, strconv.Itoa(page)).Data
	})
	lines := []string{p.Text("agent.commands", render.AgentName(p, agent)), ""}
	var keyboard tgapi.Keyboard
	for _, c := range list[from:to] {
		line := c.Name
		if c.Description != "" {
			line += ": " + render.Cut(render.OneLine(c.Description), maxDescription)
		}
		lines = append(lines, line)
		keyboard = append(keyboard, []tgapi.Button{s.button(render.Cut(c.Name, 40), opOpen, tgapi.Digest(c.Name))})
	}
	lines = append(lines, "", p.Text("agent.commands-help"))
	return tgapi.Answer{Edit: tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: append(keyboard, pager...)}}
}

// Kinds of buttons. The button's data continues with a page number or the hash of a command's name.
const (
	opCompact = "c"
	opPage    = "p"
	opOpen    = "o" // runs a command, or explains its arguments if it has any
	opRun     = "r" // runs a command without arguments
)

func (s *Screen) button(text, op, what string) tgapi.Button {
	return tgapi.NewButton(text, Action, op+what)
}

// Press handles a button of a Screen. data is the button's data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, data string) (tgapi.Answer, error) {
	a, err := s.press(ctx, by, data)
	return a.Answer, err
}

func (s *Screen) press(ctx context.Context, by orchestrator.Press, data string) (Answer, error) {
	say := s.Lang.Of(by.Conversation.Chat)
	if data == "" {
		return Answer{Answer: tgapi.Stale(say)}, nil
	}
	op, what := data[:1], data[1:]
	p := orchestrator.Prompt{Conversation: by.Conversation, Person: by.Person, Updates: by.Updates}
	if op == opCompact {
		return s.Compact(ctx, "", p)
	}
	agent, list, err := s.list(ctx, by.Conversation)
	if err != nil {
		return s.refused(say, agent, err)
	}
	if page, ok := tgapi.ButtonNumber(what); ok && op == opPage {
		return Answer{Answer: s.page(say, agent, list, page)}, nil
	}
	i := slices.IndexFunc(list, func(c cli.AgentCommand) bool { return tgapi.Digest(c.Name) == what })
	switch {
	case i < 0, op != opOpen && op != opRun:
		return Answer{Answer: tgapi.Stale(say)}, nil
	case op == opOpen && list[i].Arguments != "":
		return Answer{Answer: tgapi.Answer{Edit: s.arguments(say, list[i], i)}}, nil
	}
	p.Text = list[i].Name
	receipt, err := s.Service.RunCommand(ctx, p)
	return s.turnAnswer(say, receipt, err)
}

// arguments returns the page that explains how to run a command with arguments. listIndex is the command's index in the
// list of commands.
func (s *Screen) arguments(p lang.Printer, c cli.AgentCommand, listIndex int) tgapi.Page {
	run := s.button(p.Text("agent.run-without"), opRun, tgapi.Digest(c.Name))
	back := s.button(p.Text("common.back"), opPage, strconv.Itoa(tgapi.PageOf(listIndex)))
	name := strings.TrimLeft(c.Name, "/$")
	text := p.Text("agent.arguments", c.Name, render.Cut(render.OneLine(c.Arguments), 200),
		fmt.Sprintf("/cmd %s", name))
	return tgapi.Page{Text: text, Keyboard: tgapi.Keyboard{{run}, {back}}}
}
