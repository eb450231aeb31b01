package real

import (
	"fmt"
	"strings"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// The IDs of the users in every scenario, and the ID of the first supergroup or forum.
const (
	ownerID   telegram.UserID = 100
	annID     telegram.UserID = 101
	bobID     telegram.UserID = 102
	malloryID telegram.UserID = 666
	firstChat telegram.ChatID = -1001000
)

// places contains the users of a scenario and their chats.
type places struct {
	srv    *telegram.Server
	people map[scenario.Person]*telegram.Person
	chats  map[scenario.Place]*telegram.Chat // all chats, without topics
	topics map[scenario.Place]telegram.TopicID
	hurt   map[scenario.Place]bool // chats with an event, such as a block of the bot, that was not reverted
	order  []scenario.Place
}

func newPlaces(srv *telegram.Server, options scenario.Options) *places {
	p := &places{
		srv: srv, people: map[scenario.Person]*telegram.Person{}, chats: map[scenario.Place]*telegram.Chat{},
		topics: map[scenario.Place]telegram.TopicID{}, hurt: map[scenario.Place]bool{},
	}
	for _, who := range []struct {
		name scenario.Person
		id   telegram.UserID
	}{{scenario.Owner, ownerID}, {scenario.Ann, annID}, {scenario.Bob, bobID}, {scenario.Mallory, malloryID}} {
		chat := srv.Private(who.id, string(who.name))
		p.people[who.name] = chat.Person()
		p.add(scenario.Place(who.name), chat)
	}
	for _, l := range options.Languages {
		p.people[l.Of].SetLanguage(l.Tag)
	}
	for i, c := range options.Chats {
		id := firstChat - telegram.ChatID(i)
		switch c.Kind {
		case scenario.Group:
			p.add(scenario.Place(c.Name), srv.Group(-500-telegram.ChatID(i), c.Name))
		case scenario.Supergroup:
			p.add(scenario.Place(c.Name), srv.Supergroup(id, c.Name))
		case scenario.Forum:
			forum := srv.Forum(id, c.Name)
			p.add(scenario.Place(c.Name), forum)
			for _, name := range c.Topics {
				p.topics[scenario.Place(c.Name+"/"+name)] = p.people[scenario.Owner].Topic(forum, name).ID
			}
		}
	}
	return p
}

func (p *places) add(name scenario.Place, chat *telegram.Chat) {
	p.chats[name] = chat
	p.order = append(p.order, name)
}

// groups returns the IDs of all groups, for the setting allowed_groups.
func (p *places) groups() string {
	var ids []string
	for _, c := range p.chats {
		if c.Person() == nil {
			ids = append(ids, fmt.Sprint(c.ID()))
		}
	}
	return strings.Join(ids, ", ")
}

// at returns the chat and the topic of a place. An empty place is the private chat of the user. If the place is
// unknown, at returns false.
func (p *places) at(by scenario.Person, in scenario.Place) (*telegram.Chat, telegram.TopicID, scenario.Place, bool) {
	if in == "" {
		in = scenario.Place(by)
	}
	name, _, topic := strings.Cut(string(in), "/")
	chat, ok := p.chats[scenario.Place(name)]
	if !ok || topic && p.topics[in] == 0 {
		return nil, 0, in, false
	}
	return chat, p.topics[in], in, true
}

// happen makes an event happen in a chat. It returns false if the event is impossible.
func (p *places) happen(h scenario.Happen) bool {
	chat, topic, in, ok := p.at(scenario.Owner, h.In)
	if !ok {
		return false
	}
	owner := p.people[scenario.Owner]
	private := chat.Person()
	switch {
	case h.What == scenario.Blocks && private != nil:
		private.Block()
	case h.What == scenario.Unblocks && private != nil:
		private.Unblock()
	case private != nil:
		return false
	case h.What == scenario.Migrates:
		p.chats[in] = chat.Upgrade(firstChat-100, owner)
	case h.What == scenario.Kicks:
		chat.SetBot(telegram.Kicked, owner)
	case h.What == scenario.Restricts:
		chat.SetBot(telegram.Restricted, owner)
	case h.What == scenario.Readmits:
		chat.SetBot(telegram.Administrator, owner)
	case h.What == scenario.Closes && topic != 0:
		chat.CloseTopic(topic)
	case h.What == scenario.Reopens && topic != 0:
		chat.ReopenTopic(topic)
	case h.What == scenario.Deletes && topic != 0:
		chat.DeleteTopic(topic)
	default:
		return false
	}
	whole, _, _ := strings.Cut(string(in), "/")
	p.hurt[scenario.Place(whole)] = h.What != scenario.Unblocks && h.What != scenario.Readmits &&
		h.What != scenario.Reopens
	return true
}
