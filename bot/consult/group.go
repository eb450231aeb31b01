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

// Group handles "/group". It shows the models that will answer, the number of rounds, and their cost. A button starts
// the group.
func (s *Screen) Group(ctx context.Context, a Asked) (tgapi.Page, error) {
	p := s.o.Lang.Of(a.By.Conversation.Chat)
	if strings.TrimSpace(a.Args) == "" {
		return tgapi.Page{Text: p.Text("consult.help-group")}, nil
	}
	entries, err := s.o.Models.Entries(ctx, a.By.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	panel, problem, err := s.panel(ctx, a.By.Conversation, entries)
	switch {
	case err != nil:
		return tgapi.Page{}, err
	case problem != "":
		return tgapi.Page{Text: problem}, nil
	case len(panel) < orchestrator.GroupLeast:
		return tgapi.Page{Text: p.Text("consult.no-group")}, nil
	}
	q := question{Kind: ofGroup, Models: panel, Rounds: 1, Text: a.Context + a.Args, ReplyTo: a.Message}
	id := s.o.NewID()
	if err := s.save(ctx, a.By.Conversation, id, q); err != nil {
		return tgapi.Page{}, err
	}
	return s.offer(a.By.Conversation, id, q, entries), nil
}

// panel returns the configured group. Without one it returns the default models of all usable agents, or several models
// if only one agent is usable.
func (s *Screen) panel(ctx context.Context, in orchestrator.ConversationID,
	entries []cli.MenuEntry) (panel []orchestrator.ModelChoice, problem string, err error) {
	for _, name := range s.o.Group() {
		c, p, err := s.o.Models.Find(ctx, in, name)
		if err != nil {
			return nil, "", err
		}
		if p != nil && p.Kind != naming.NoEfforts {
			return nil, s.o.Models.WhyNot(s.o.Lang.Of(in.Chat), p), nil
		}
		panel = append(panel, orchestrator.ModelChoice(c))
	}
	if len(panel) > 0 {
		return panel, "", nil
	}
	var only []cli.Model
	for _, e := range entries {
		if naming.Usable(e) && len(panel) < orchestrator.GroupMost {
			panel, only = append(panel, orchestrator.ModelChoice{Agent: e.Agent}), e.Models
		}
	}
	if len(panel) != 1 {
		return panel, "", nil
	}
	agent := panel[0].Agent
	panel = nil
	for _, m := range only[:min(len(only), orchestrator.GroupLeast+1)] {
		panel = append(panel, orchestrator.ModelChoice{Agent: agent, Model: m.ID})
	}
	return panel, "", nil
}

// offer describes the group before it starts, with the buttons that start it.
func (s *Screen) offer(in orchestrator.ConversationID, id string, q question, entries []cli.MenuEntry) tgapi.Page {
	p := s.o.Lang.Of(in.Chat)
	names := make([]string, len(q.Models))
	for i, m := range q.Models {
		names[i] = s.name(p, m)
	}
	e := s.o.Consults.Estimate(q.group(in), entries)
	text := p.Text("consult.group", p.List(names...), names[0]) + "\n" + p.Text("consult.rounds", q.Rounds, e.Questions,
		p.Tokens(e.Tokens))
	if e.CostUSD > 0 {
		text += " " + p.Text("consult.cost", p.Cost(e.CostUSD))
	}
	if e.Unpriced > 0 {
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
