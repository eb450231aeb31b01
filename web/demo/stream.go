package demo

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/web"
)

const (
	updatePause = 40 * time.Millisecond // minimum time between two updates
	panelPeriod = time.Second
)

// pageStream sends events to one page. It stores the data that it has sent, and sends only changes.
type pageStream struct {
	*web.Stream
	p     *Page
	shown map[string]json.RawMessage // JSON that the page has already received, by name
	chats map[telegram.ChatID][]telegram.MessageID
	seen  int // number of the recorder's entries that the page has already received
}

func (p *Page) serveStream(w http.ResponseWriter, r *http.Request) {
	stream, err := web.OpenStream(w)
	if err != nil {
		return // the page was closed
	}
	s := &pageStream{Stream: stream, p: p, shown: map[string]json.RawMessage{},
		chats: map[telegram.ChatID][]telegram.MessageID{}}
	panel := time.NewTicker(panelPeriod)
	defer panel.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	if s.Send("hello", p.hello()) != nil || s.panel(r) != nil {
		return
	}
	for {
		changed, recorded := p.opts.Telegram.Changed(), p.record.wait()
		if s.send() != nil {
			return
		}
		pause.Reset(updatePause)
		select {
		case <-pause.C:
		case <-r.Context().Done():
			return
		}
		select {
		case <-changed:
		case <-recorded:
		case <-panel.C:
			if s.panel(r) != nil {
				return
			}
		case <-p.opts.Telegram.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (p *Page) hello() wireHello {
	h := wireHello{
		Bot: "ductor", Dir: p.opts.Dir, Version: p.opts.Version, Tour: p.opts.Tour, Other: p.opts.Other,
		Users: []wireUser{{You, "You", "the owner"}, {Sam, "Sam", "may use the bot"},
			{Visitor, "Visitor", "not allowed"}},
	}
	for _, c := range p.opts.Telegram.Chats() {
		h.Chats = append(h.Chats, wireChatOf(c, c.View()))
	}
	for _, c := range p.opts.Telegram.Menu("default") {
		h.Commands = append(h.Commands, wireCommand(c))
	}
	return h
}

func (s *pageStream) send() error {
	for _, c := range s.p.opts.Telegram.Chats() {
		if err := s.chat(c); err != nil {
			return err
		}
	}
	entries, last := s.p.record.since(s.seen)
	s.seen = last
	for _, e := range entries {
		if err := s.Send(e.kind, e.value); err != nil {
			return err
		}
	}
	if err := s.sendChanged("tour", "tour", s.p.tour.state()); err != nil {
		return err
	}
	return s.Flush()
}

func (s *pageStream) chat(c *telegram.Chat) error {
	v := c.View()
	if err := s.sendChanged("chat "+chatName(v.Chat), "chat", wireChatOf(c, v)); err != nil {
		return err
	}
	ids := make([]telegram.MessageID, 0, len(v.Messages))
	for _, m := range v.Messages {
		ids = append(ids, m.ID)
		if err := s.sendChanged(messageName(v.Chat, m.ID), "message", wireOf(m)); err != nil {
			return err
		}
	}
	for _, id := range s.chats[v.Chat] {
		if _, there := slices.BinarySearch(ids, id); there {
			continue
		}
		delete(s.shown, messageName(v.Chat, id))
		if err := s.Send("gone", map[string]any{"chat": v.Chat, "id": id}); err != nil {
			return err
		}
	}
	s.chats[v.Chat] = ids
	return nil
}

// sendChanged sends a value, unless the page already has this value.
func (s *pageStream) sendChanged(name, event string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if bytes.Equal(s.shown[name], data) {
		return nil
	}
	s.shown[name] = data
	return s.SendJSON(event, data)
}

// panel sends data whose changes cause no event, such as the running processes. The caller calls panel once a second.
func (s *pageStream) panel(r *http.Request) error {
	processes, err := s.p.opts.Bot.Processes(r.Context())
	if err != nil {
		s.p.opts.Log.Debug("list the agents for the page", "err", err)
	}
	if err := s.sendChanged("processes", "processes", processes); err != nil {
		return err
	}
	var commands []wireCommand
	for _, c := range s.p.opts.Telegram.Menu("default") {
		commands = append(commands, wireCommand(c))
	}
	if err := s.sendChanged("commands", "commands", commands); err != nil {
		return err
	}
	if err := s.sendChanged("budgets", "budgets", s.p.opts.Bot.Budgets()); err != nil {
		return err
	}
	return s.Flush()
}
