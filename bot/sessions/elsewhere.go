package sessions

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// listElsewhere lists the user's sessions in other chats. In a group, all members can read the titles. So listElsewhere
// first asks the user to confirm this, unless confirmed is toAll.
func (s *Screen) listElsewhere(ctx context.Context, by orchestrator.Press, page int,
	confirmed audience) (tgapi.Page, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	if by.Conversation.Group() && confirmed != toAll {
		return s.askToShow(p, opElsewhere, "0", p.Text("sessions.elsewhere-in-group")), nil
	}
	found, more, err := s.o.Sessions.FindSessions(ctx, orchestrator.SessionQuery{
		Conversation: by.Conversation, Elsewhere: by.Person, Offset: page * perPage, Limit: perPage,
	})
	if err != nil {
		return tgapi.Page{}, err
	}
	text := []string{p.Text("sessions.elsewhere-none")}
	if len(found) > 0 {
		text[0] = p.Text("sessions.elsewhere-list")
	}
	var k tgapi.Keyboard
	for i, f := range found {
		name := fmt.Sprintf("%d. %s%s", page*perPage+i+1, pin(f.Session), render.Cut(s.title(p, f.Session), titleShown))
		text = append(text, "", name, "    "+s.about(p, f.Session))
		k = append(k, []tgapi.Button{newButton(name, opMoving, string(f.Session.ID), "")})
	}
	k = append(k, arrows(page, more, func(sign string, to int) tgapi.Button {
		return newButton(sign, opElsewhere, strconv.Itoa(to), string(confirmed))
	})...)
	return tgapi.Page{Text: strings.Join(text, "\n"), Keyboard: append(k, []tgapi.Button{listButton(p)})}, nil
}

// movePage asks the user to confirm that a session of another chat moves to this chat.
func (s *Screen) movePage(ctx context.Context, by orchestrator.Press, id orchestrator.SessionID) (tgapi.Page, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	of, err := s.o.Sessions.Own(ctx, by, id)
	if err != nil {
		return tgapi.Page{}, err
	}
	title := render.Cut(s.title(p, of), titleShown)
	question := p.Text("sessions.really-move", title)
	if by.Conversation.Group() {
		question = p.Text("sessions.really-move-group", title)
	}
	yes := newButton(p.Text("sessions.move"), opMove, string(id), "")
	back := newButton(p.Text("common.back"), opElsewhere, "0", string(toAll))
	return tgapi.Page{Text: question + "\n\n" + s.about(p, of), Keyboard: tgapi.Keyboard{{yes}, {back}}}, nil
}
