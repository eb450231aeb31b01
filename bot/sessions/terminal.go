package sessions

import (
	"context"
	"errors"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// listStored lists the sessions that agents have stored for the conversation's directory, for example sessions in a
// terminal. In a group, all members can read the list. So listStored first asks the user to confirm this, unless
// confirmed is toAll.
func (s *Screen) listStored(ctx context.Context, in orchestrator.ConversationID,
	confirmed audience) (tgapi.Page, error) {
	p := s.o.Lang.Of(in.Chat)
	if in.Group() && confirmed != toAll {
		return s.askToShow(p, opTerminal, "", p.Text("sessions.terminal-in-group")), nil
	}
	all, err := s.o.Sessions.Stored(ctx, in)
	if errors.Is(err, errors.ErrUnsupported) {
		return tgapi.Page{Text: p.Text("sessions.terminal-homes"), Keyboard: tgapi.Keyboard{{listButton(p)}}}, nil
	}
	if err != nil {
		return tgapi.Page{}, err
	}
	text := []string{p.Text("sessions.terminal-none")}
	var keyboard tgapi.Keyboard
	for _, f := range all {
		b, ok := storedButton(render.AgentName(p, f.Agent)+": "+render.Cut(f.First, titleShown), opStored, f.Agent,
			f.ID)
		if !ok || len(keyboard) == perPage {
			continue
		}
		keyboard = append(keyboard, []tgapi.Button{b})
		text[0] = p.Text("sessions.terminal-list", f.Dir)
		text = append(text, "", p.Text("sessions.terminal-entry", len(keyboard), render.AgentName(p, f.Agent),
			s.ago(p, f.Used)), "    “"+render.Cut(f.First, excerptShown)+"”")
		if f.Last != f.First {
			text = append(text, "    … “"+render.Cut(f.Last, excerptShown)+"”")
		}
	}
	return tgapi.Page{Text: strings.Join(text, "\n"), Keyboard: append(keyboard, []tgapi.Button{listButton(p)})}, nil
}

// askToShow asks the user to confirm that all members of a group may read a list.
func (s *Screen) askToShow(p lang.Printer, list op, key, question string) tgapi.Page {
	yes := newButton(p.Text("sessions.show-all"), list, key, string(toAll))
	return tgapi.Page{Text: question, Keyboard: tgapi.Keyboard{{yes}, {listButton(p)}}}
}

// audience determines who may read a list of sessions.
type audience string

// toAll means that the user has confirmed that all members of the group may read the list.
const toAll audience = "all"

// resumeStored continues a session that an agent has stored.
func (s *Screen) resumeStored(ctx context.Context, by orchestrator.Press, p pressed) (tgapi.Answer, error) {
	say := s.o.Lang.Of(by.Conversation.Chat)
	now, err := s.o.Sessions.ResumeStored(ctx, by, cli.Agent(p.key), cli.AgentSessionID(p.arg))
	if err != nil {
		return tgapi.Answer{}, err
	}
	page, err := s.page(ctx, say, now)
	page.Text += "\n\n" + say.Text("sessions.terminal-resumed", render.AgentName(say, p.key))
	a := tgapi.Answer{Text: say.Text("sessions.resumed", s.title(say, now)), Edit: page}
	if p.op == opReported && err == nil {
		c := message.Content{Text: render.Plain(page.Text), Keyboard: page.Keyboard}
		a.Edit, a.Messages = tgapi.Page{}, []orchestrator.Message{message.Compose(by.Conversation, c)}
	}
	return a, err
}

// TakeOver returns a button that continues a terminal's session in the chat. It returns false if the agent's ID of the
// session is too long for the data of a button.
func TakeOver(p lang.Printer, agent cli.Agent, id cli.AgentSessionID) (tgapi.Button, bool) {
	return storedButton(p.Text("terminal.take-over"), opReported, agent, id)
}

// setAway handles "/terminal" with an argument.
func (s *Screen) setAway(by orchestrator.Press, choice string) (render.Text, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	err := orchestrator.ErrBadChoice
	if s.o.SetAway != nil {
		err = s.o.SetAway(by, choice)
	}
	said := map[string]lang.Key{"on": "terminal.away-on", "off": "terminal.away-off", "auto": "terminal.away-auto"}
	switch {
	case errors.Is(err, orchestrator.ErrBadChoice):
		return render.Plain(p.Text("terminal.how")), nil
	case errors.Is(err, orchestrator.ErrNotOwner):
		return render.Plain(p.Text("bot.not-owner")), nil
	case errors.Is(err, ErrNoHooks):
		return render.Plain(p.Text("terminal.no-hooks")), nil
	case err != nil:
		return render.Text{}, err
	}
	return render.Plain(p.Text(said[choice])), nil
}

// Terminal handles "/terminal". Without an argument, it returns the shell command that continues the current session in
// a terminal. For the arguments, see Options.SetAway.
func (s *Screen) Terminal(ctx context.Context, by orchestrator.Press, args string) (render.Text, error) {
	if word := strings.ToLower(strings.TrimSpace(args)); word != "" {
		return s.setAway(by, word)
	}
	p := s.o.Lang.Of(by.Conversation.Chat)
	agent, line, err := s.o.Sessions.Terminal(ctx, by)
	switch {
	case errors.Is(err, orchestrator.ErrNoSession):
		return render.Plain(p.Text("sessions.no-agent-session")), nil
	case errors.Is(err, errors.ErrUnsupported):
		return render.Plain(p.Text("sessions.no-terminal", render.AgentName(p, agent))), nil
	case errors.Is(err, orchestrator.ErrNotAllowed):
		return render.Plain(p.Text("common.not-for-members")), nil
	case err != nil:
		return render.Text{}, err
	}
	return render.Concat(render.Plain(p.Text("sessions.terminal", render.AgentName(p, agent))+"\n\n"),
		render.CodeBlock("", line)), nil
}
