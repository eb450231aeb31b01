package consult

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/bot/tgapi"
	"ductor/cli/naming"
	"ductor/orchestrator"
)

// Consult handles "/consult". It asks the model that the first word names, or else continues with the model that was
// asked last. If it asks nothing, it returns a page to show instead; an empty page means that the updates are finished.
func (s *Screen) Consult(ctx context.Context, a Asked) (tgapi.Page, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(a.Args), " ")
	if first, more, cut := strings.Cut(name, "\n"); cut {
		name, rest = first, more+" "+rest
	}
	rest = strings.TrimSpace(rest)
	if name == "" {
		return s.help(ctx, a.By.Conversation)
	}
	q := question{Kind: ofOne, Text: a.Context + rest, ReplyTo: a.Message}
	m, problem, err := s.o.Models.Find(ctx, a.By.Conversation, strings.TrimPrefix(name, "@"))
	if err != nil {
		return tgapi.Page{}, err
	}
	if problem == nil || problem.Kind == naming.NoEfforts {
		if rest == "" {
			return tgapi.Page{Text: s.o.Lang.Of(a.By.Conversation.Chat).Text("consult.no-question", name)}, nil
		}
		q.Models = []orchestrator.ModelChoice{orchestrator.ModelChoice(m)}
		return tgapi.Page{}, s.begin(ctx, a.By, q)
	}
	last, err := s.o.Consults.Last(ctx, a.By.Conversation, "")
	switch {
	case problem.Kind != naming.Unknown || problem.Near != "" || rest == "" ||
		errors.Is(err, orchestrator.ErrNoConsult):
		return tgapi.Page{Text: s.o.Models.WhyNot(s.o.Lang.Of(a.By.Conversation.Chat), problem)}, nil
	case err != nil:
		return tgapi.Page{}, err
	}
	q.Models, q.Text = []orchestrator.ModelChoice{last}, a.Context+strings.TrimSpace(a.Args)
	return tgapi.Page{}, s.begin(ctx, a.By, q)
}

// help explains how to ask, and names the model that the next question without a model goes to.
func (s *Screen) help(ctx context.Context, in orchestrator.ConversationID) (tgapi.Page, error) {
	p := s.o.Lang.Of(in.Chat)
	text := p.Text("consult.help")
	last, err := s.o.Consults.Last(ctx, in, "")
	if errors.Is(err, orchestrator.ErrNoConsult) {
		return tgapi.Page{Text: text}, nil
	}
	return tgapi.Page{Text: text + "\n" + p.Text("consult.last", s.name(p, last))}, err
}

// Reply continues a consultation if the message replies to one of the answers. It reports whether it handled the
// message.
func (s *Screen) Reply(ctx context.Context, a Asked, to int) (bool, error) {
	if !s.Offered() || !a.By.May(orchestrator.ActAsChat) || strings.TrimSpace(a.Args) == "" {
		return false, nil
	}
	m, err := s.o.Journal.MessageAt(ctx, a.By.Conversation, to)
	if err != nil {
		return false, fmt.Errorf("find an answer: %w", err)
	}
	id, agent, ok := answerOf(m.Key)
	if !ok {
		return false, nil
	}
	return true, s.begin(ctx, a.By, question{Kind: ofOne, Follows: id,
		Models: []orchestrator.ModelChoice{{Agent: agent}}, Text: a.Args, ReplyTo: a.Message})
}

// Press handles a press. data is the button's data without Action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, data string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	stale := tgapi.Stale(p)
	op, id, _ := strings.Cut(data, ":")
	q, there, err := s.load(ctx, by.Conversation, id)
	if err != nil || !there || len(q.Models) == 0 || !s.Offered() || op == "" || len(by.Updates) == 0 {
		return stale, err
	}
	switch op[:1] {
	case opStop:
		if s.o.Consults.Abort(by.Conversation) == 0 {
			return stale, nil
		}
		return tgapi.Answer{Text: p.Text("bot.stopping")}, nil
	case opAgain:
		return s.again(ctx, by, id, q)
	}
	if q.Kind != ofGroup {
		return stale, nil
	}
	return s.pressGroup(ctx, by, op, id, q)
}

// again repeats a question that got no answer.
func (s *Screen) again(ctx context.Context, by orchestrator.Press, id string, q question) (tgapi.Answer, error) {
	if err := s.take(ctx, by, id, q); err != nil {
		return tgapi.Answer{}, err
	}
	return tgapi.Answer{Edit: tgapi.Page{Text: s.o.Lang.Of(by.Conversation.Chat).Text("consult.asked-again")}},
		s.begin(ctx, by, q)
}
