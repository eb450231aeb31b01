package consult

import (
	"context"
	"strconv"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// keyboard returns a function that creates the buttons below an answer. The function needs the ID of the session entry
// that stores the answer.
func (s *Screen) keyboard(ctx context.Context, in orchestrator.ConversationID) func(cli.TurnID) tgapi.Keyboard {
	p := s.o.Lang.Of(in.Chat)
	st, err := s.o.Desk.Status(ctx, in)
	if err != nil {
		s.o.Log.Warn("find the agent for an answer's button", "err", err)
	}
	return func(entry cli.TurnID) tgapi.Keyboard {
		on := tgapi.NewButton(p.Text("consult.ask-on"), Action, opOn+":"+string(entry))
		if err != nil {
			return tgapi.Keyboard{{on}}
		}
		return tgapi.Keyboard{{giveButton(p, entry, st.Agent), on}}
	}
}

// giveButton returns the button that sends a model's answer to an agent as a prompt.
func giveButton(p lang.Printer, entry cli.TurnID, to cli.Agent) tgapi.Button {
	return tgapi.NewButton(p.Text("consult.give", render.AgentName(p, to)), Action,
		opGive+":"+string(entry)+":"+agentCode(to))
}

// agentCode returns a short hash of an agent's name for the data of a button. Names of agents can be too long for a
// button.
func agentCode(agent cli.Agent) string { return tgapi.Digest(string(agent))[:8] }

// handover records in the database whether a user has sent a model's answer to the conversation's agent.
type handover struct {
	Taken int64 `json:"taken"` // ID of the update of the button press; 0 if no user has pressed the button
}

// advice returns the session entry that stores a model's answer. It returns ErrNoTurn if the session entry with the
// given ID is a turn of the conversation's agent.
func (s *Screen) advice(ctx context.Context, by orchestrator.Press, id cli.TurnID) (orchestrator.Turn, error) {
	entry, err := s.o.Entries.Entry(ctx, by.Conversation, id)
	if err == nil && entry.Entry.Kind == orchestrator.TurnEntry {
		err = orchestrator.ErrNoTurn
	}
	return entry, err
}

// give sends the answer of another model to the conversation's agent, as a prompt in the session that contains the
// answer. If another session is the current one, give first selects the session of the answer. It sends each answer
// only once.
func (s *Screen) give(ctx context.Context, by orchestrator.Press, messageID int,
	data string) (a tgapi.Answer, err error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	if !by.May(orchestrator.ActAsChat) { // a prompt of a member must start with the member's name
		return a, orchestrator.ErrNotAllowed
	}
	id, named, _ := strings.Cut(data, ":")
	entry, err := s.advice(ctx, by, cli.TurnID(id))
	if err != nil {
		return a, err
	}
	st, err := s.o.Desk.Status(ctx, by.Conversation)
	if err != nil {
		return a, err
	}
	name := render.AgentName(p, st.Agent)
	key := "given/" + string(by.Conversation.Key()) + "/" + id
	mark, _, err := message.LoadValue[handover](ctx, s.o.Journal, key)
	switch {
	case err != nil:
		return a, err
	case mark.Taken != 0 && mark.Taken != by.Updates[0]:
		return tgapi.Answer{Text: p.Text("consult.given-already")}, nil
	case mark.Taken == 0 && named != agentCode(st.Agent):
		b := giveButton(p, entry.ID, st.Agent)
		return tgapi.Answer{Text: p.Text("consult.other-agent", name), Instead: &b}, nil
	}
	if entry.Session != st.Session.ID {
		if !by.May(orchestrator.ChangeSessions) {
			return a, orchestrator.ErrNotAllowed
		}
		if _, err := s.o.Entries.Resume(ctx, by.Conversation, entry.Session); err != nil {
			return a, err
		}
	}
	mark.Taken = by.Updates[0]
	if err := message.SaveValue(ctx, s.o.Journal, key, mark); err != nil {
		return a, err
	}
	receipt, err := s.o.Desk.Submit(ctx, orchestrator.Prompt{
		Conversation: by.Conversation, Person: by.Person, Message: messageID, Updates: by.Updates, Arrived: by.Arrived,
		Rights: orchestrator.Rights{Of: by.Role.OfTurns()},
		Text: p.Text("consult.material", s.name(p, modelOf(entry)),
			entry.Prompt.Text, entry.Outcome.Shown()), Quotes: entry.ID,
	}, orchestrator.Wants{})
	if err == nil && !receipt.Full {
		b := giveButton(p, entry.ID, st.Agent)
		b.Text = p.Text("consult.given", name)
		return tgapi.Answer{Text: b.Text, Instead: &b}, nil
	}
	if saved := message.SaveValue(ctx, s.o.Journal, key, handover{}); saved != nil && err == nil {
		err = saved
	}
	return tgapi.Answer{Text: p.Text("bot.queue-full")}, err
}

// askOn sends a message that asks the user for a further question. The question goes to the model whose answer has the
// pressed button.
func (s *Screen) askOn(ctx context.Context, by orchestrator.Press, messageID int, id cli.TurnID) (tgapi.Answer, error) {
	entry, err := s.advice(ctx, by, id)
	if err != nil {
		return tgapi.Answer{}, err
	}
	p := s.o.Lang.Of(by.Conversation.Chat)
	model := s.name(p, modelOf(entry))
	content := message.Content{Text: render.Plain(p.Text("consult.reply", model)), ReplyTo: messageID}
	m := message.Compose(by.Conversation, content)
	m.Key = adviceKey(id, strconv.FormatInt(by.Updates[0], 10), 0)
	return tgapi.Answer{Messages: []orchestrator.Message{m}}, nil
}
