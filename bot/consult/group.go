package consult

import (
	"context"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/orchestrator"
)

// defaultPanel selects the models for a question to a group: the default model of each available agent. If only one
// agent is available, defaultPanel selects several models of this agent.
func (s *Screen) defaultPanel(ctx context.Context, in orchestrator.ConversationID, q *question) error {
	entries, err := s.o.Models.Entries(ctx, in)
	if err != nil {
		return err
	}
	var only []cli.Model
	for _, e := range entries {
		if naming.Usable(e) && len(q.Models) < orchestrator.GroupMost {
			q.Models, only = append(q.Models, orchestrator.ModelChoice{Agent: e.Agent}), e.Models
		}
	}
	if len(q.Models) != 1 {
		return nil
	}
	agent := q.Models[0].Agent
	q.Models = nil
	for _, m := range only[:min(len(only), orchestrator.GroupLeast+1)] {
		q.Models = append(q.Models, orchestrator.ModelChoice{Agent: agent, Model: m.ID})
	}
	return nil
}

// propose stores a question for several models, and returns the page with the button that asks them.
func (s *Screen) propose(ctx context.Context, in orchestrator.ConversationID, q question) (tgapi.Page, error) {
	entries, err := s.o.Models.Entries(ctx, in)
	if err != nil {
		return tgapi.Page{}, err
	}
	id := s.o.NewID()
	if err := s.save(ctx, in, id, q); err != nil {
		return tgapi.Page{}, err
	}
	return s.offer(in, id, q, entries), nil
}

// offer returns the page that asks the user to confirm a question to several models. The page shows the models and the
// estimated cost, and has buttons for the number of rounds.
func (s *Screen) offer(in orchestrator.ConversationID, id string, q question, entries []cli.MenuEntry) tgapi.Page {
	p := s.o.Lang.Of(in.Chat)
	e := s.o.Consults.Estimate(q.group(in, 0), entries)
	text := p.Text("consult.group", s.nameAll(p, q.Models), s.name(p, q.Models[0])) + "\n" +
		p.Text("consult.rounds", q.Rounds, e.Questions, p.Tokens(e.Tokens))
	if e.CostUSD > 0 {
		text += " " + p.Text("consult.cost", p.Cost(e.CostUSD))
	}
	switch {
	case e.Unpriced > 0 && e.Unpriced == e.Questions:
		text += " " + p.Text("consult.all-unpriced")
	case e.Unpriced > 0:
		text += " " + p.Text("consult.unpriced", e.Unpriced)
	}
	var more []tgapi.Button
	for n := 1; n <= orchestrator.GroupRounds; n++ {
		b := s.button(p, "consult.begin", opRounds+strconv.Itoa(n), id)[0]
		b.Text = render.Marked(p.Text("consult.round-button", n), n == q.Rounds)
		more = append(more, b)
	}
	return tgapi.Page{Text: text, Keyboard: tgapi.Keyboard{
		more, append(s.button(p, "consult.begin", opBegin, id), s.button(p, "common.cancel", opCancel, id)...),
	}}
}

func (s *Screen) pressGroup(ctx context.Context, by orchestrator.Press, op, id string, q question) (tgapi.Answer,
	error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	switch {
	case op == opBegin:
		if err := s.take(ctx, by, id, q); err != nil {
			return tgapi.Answer{}, err
		}
		return tgapi.Answer{Edit: tgapi.Page{Text: p.Text("consult.begun")}}, s.begin(ctx, by, q)
	case op == opCancel:
		return tgapi.Answer{Edit: tgapi.Page{Text: p.Text("consult.group-cancelled")}}, s.take(ctx, by, id, q)
	case q.Taken != 0:
		return tgapi.Stale(p), nil
	}
	n, ok := tgapi.ButtonNumber(strings.TrimPrefix(op, opRounds))
	if !ok || n < 1 || n > orchestrator.GroupRounds {
		return tgapi.Stale(p), nil
	}
	q.Rounds = n
	entries, err := s.o.Models.Entries(ctx, by.Conversation)
	if err == nil {
		err = s.save(ctx, by.Conversation, id, q)
	}
	if err != nil {
		return tgapi.Answer{}, err
	}
	return tgapi.Answer{Edit: s.offer(by.Conversation, id, q, entries)}, nil
}
