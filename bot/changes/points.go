package changes

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Checkpoint handles "/checkpoint" and "/checkpoint list". The first stores the current state of the files as a
// checkpoint. The second lists the restore points of the conversation.
func (s *Screen) Checkpoint(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	if s.o.Changes == nil {
		return tgapi.Page{Text: p.Text("changes.no-repository")}, nil
	}
	name := strings.TrimSpace(args)
	if strings.EqualFold(name, "list") {
		return s.points(ctx, by, 0)
	}
	c, err := s.o.Changes.Checkpoint(ctx, by, name)
	if why := s.why(by.Conversation, err); why != "" {
		return tgapi.Page{Text: why}, nil
	}
	if err != nil {
		return tgapi.Page{}, err
	}
	return tgapi.Page{
		Text: p.Text("changes.checkpoint", s.nameOf(c, orchestrator.BeforeTurn)),
		Keyboard: tgapi.Keyboard{
			{button(p.Text("changes.return"), opReturn, c.ID), button(p.Text("changes.list"), opPoints, "0")},
		},
	}, nil
}

// nameOf returns the name of a restore point, as shown to users. The restore point is the state of the files before or
// after the turn.
func (s *Screen) nameOf(c orchestrator.TurnChanges, side orchestrator.ReturnTo) string {
	p := s.o.Lang.Of(c.Conversation.Chat)
	at := p.Moment(c.At.Local())
	prompt := cmp.Or(render.ShortLine(c.Title, 60), p.Text("sessions.no-title"))
	switch {
	case c.Checkpoint && c.Title == "":
		return p.Text("changes.unnamed", at)
	case c.Checkpoint:
		return "📌 " + render.ShortLine(c.Title, 60) + " · " + at
	case side == orchestrator.AfterTurn:
		return p.Text("changes.after", prompt, at)
	}
	return p.Text("changes.before", prompt, at)
}

// points returns a page of the list of the conversation's restore points.
func (s *Screen) points(ctx context.Context, by orchestrator.Press, page int) (tgapi.Page, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	all, err := s.o.Changes.Checkpoints(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	if len(all) == 0 {
		return tgapi.Page{Text: p.Text("changes.no-points")}, nil
	}
	k := s.keyboard(p, all, page, func(page int) string { return button("", opPoints, strconv.Itoa(page)).Data })
	return tgapi.Page{Text: p.Text("changes.points"), Keyboard: k}, nil
}

// keyboard returns the buttons for one page of restore points. pageData returns the data of a button that opens another
// page.
func (s *Screen) keyboard(p lang.Printer, all []orchestrator.TurnChanges, page int,
	pageData func(page int) string) (k tgapi.Keyboard) {
	from, until, pager := tgapi.Paged(p, page, len(all), pageData)
	for _, c := range all[from:until] {
		k = append(k, []tgapi.Button{button(render.Cut(s.nameOf(c, orchestrator.BeforeTurn), 60), opReturn, c.ID)})
	}
	return append(k, pager...)
}

// SessionButton returns a button that lists the restore points of a session.
func SessionButton(p lang.Printer, id orchestrator.SessionID) tgapi.Button {
	return button(p.Text("changes.of-session"), opSession, "0:"+string(id))
}

// ofSession returns a page of the list of a session's restore points.
func (s *Screen) ofSession(ctx context.Context, by orchestrator.Press, data string) (tgapi.Page, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	number, id, _ := strings.Cut(data, ":")
	page, _ := tgapi.ButtonNumber(number)
	all, err := s.o.Changes.SessionChanges(ctx, by.Conversation, orchestrator.SessionID(id))
	if err != nil {
		return tgapi.Page{}, err
	}
	shown := tgapi.Page{Text: p.Text("changes.no-turns")}
	if len(all) > 0 {
		shown.Text = p.Text("changes.session-points")
		shown.Keyboard = s.keyboard(p, all, page, func(page int) string {
			return button("", opSession, strconv.Itoa(page)+":"+id).Data
		})
	}
	if s.o.Session != nil {
		shown.Keyboard = append(shown.Keyboard, []tgapi.Button{s.o.Session(p, orchestrator.SessionID(id))})
	}
	return shown, nil
}

// askReturn asks the user to confirm that all files return to a restore point. id is the ID of a turn or checkpoint.
func (s *Screen) askReturn(ctx context.Context, by orchestrator.Press, id string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	c, err := s.o.Changes.Changes(ctx, by.Conversation, id)
	if err != nil {
		return tgapi.Answer{}, err
	}
	k := tgapi.Keyboard{{button(p.Text("changes.return"), opReturns, id), button(p.Text("common.back"), opPoints, "0")}}
	name := s.nameOf(c, orchestrator.BeforeTurn)
	if !c.Checkpoint {
		name += "\n" + s.nameOf(c, orchestrator.AfterTurn)
		k = tgapi.Keyboard{
			{button(p.Text("changes.return-before"), opReturns, id),
				button(p.Text("changes.return-after"), opAfter, id)},
			{button(p.Text("common.back"), opSession, "0:"+string(c.Session))},
		}
	}
	return tgapi.Answer{Edit: tgapi.Page{Text: p.Text("changes.really-return", name), Keyboard: k}}, nil
}

func (s *Screen) goBack(ctx context.Context, by orchestrator.Press, id string,
	side orchestrator.ReturnTo) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	to, before, err := s.o.Changes.Return(ctx, by, id, side)
	if err != nil {
		return tgapi.Answer{}, err
	}
	return tgapi.Answer{Edit: tgapi.Page{
		Text: p.Text("changes.returned", before.Changed.Files, s.nameOf(to, side)),
		Keyboard: tgapi.Keyboard{
			{button(p.Text("changes.go-back"), opReturn, before.ID), button(p.Text("changes.list"), opPoints, "0")},
		},
	}}, nil
}
