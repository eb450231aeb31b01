package simulated

import (
	"fmt"
	"strings"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// town contains the users of a scenario and their chats.
type town struct {
	people map[scenario.Person]*telegram.Person
	chats  []*square
}

type square struct {
	*telegram.Chat
	name   scenario.Place
	kind   scenario.ChatKind // empty for a private chat
	topics map[scenario.Place]telegram.TopicID
	before telegram.ChatID // ID of a group before it became a supergroup
	hurt   map[scenario.Place]bool
}

func people() []scenario.Person {
	return []scenario.Person{scenario.Owner, scenario.Ann, scenario.Bob, scenario.Mallory}
}

func idOf(p scenario.Person) telegram.UserID {
	for i, one := range people() {
		if one == p {
			return telegram.UserID(1001 + i)
		}
	}
	return 0
}

func groupID(kind scenario.ChatKind, i int) telegram.ChatID {
	if kind == scenario.Group {
		return telegram.ChatID(-501 - i)
	}
	return telegram.ChatID(-1000000000501 - int64(i))
}

func newTown(s *telegram.Server, o scenario.Options) town {
	t := town{people: map[scenario.Person]*telegram.Person{}}
	for _, p := range people() {
		name := strings.ToUpper(string(p[:1])) + string(p[1:])
		c := s.Private(idOf(p), name)
		t.people[p] = c.Person()
		t.chats = append(t.chats, &square{Chat: c, name: scenario.Place(p), hurt: map[scenario.Place]bool{}})
	}
	for _, l := range o.Languages {
		t.people[l.Of].SetLanguage(l.Tag)
	}
	for i, c := range o.Chats {
		t.chats = append(t.chats, t.group(s, c, groupID(c.Kind, i)))
	}
	return t
}

func (t town) group(s *telegram.Server, c scenario.Chat, id telegram.ChatID) *square {
	q := &square{name: scenario.Place(c.Name), kind: c.Kind, topics: map[scenario.Place]telegram.TopicID{},
		hurt: map[scenario.Place]bool{}}
	switch c.Kind {
	case scenario.Group:
		q.Chat = s.Group(id, c.Name)
	case scenario.Supergroup:
		q.Chat = s.Supergroup(id, c.Name)
	case scenario.Forum:
		q.Chat = s.Forum(id, c.Name)
		for _, topic := range c.Topics {
			q.topics[scenario.Place(c.Name+"/"+topic)] = t.people[scenario.Owner].Topic(q.Chat, topic).ID
		}
	}
	return q
}

// groups returns the IDs of all groups as a TOML array.
func (t town) groups() string {
	var ids []string
	for _, c := range t.chats {
		if c.kind != "" {
			ids = append(ids, fmt.Sprint(int64(c.ID())))
		}
	}
	return "[" + strings.Join(ids, ", ") + "]"
}

// find returns the chat and the topic of a place. If the place is empty, find returns the private chat of the user.
func (t town) find(in scenario.Place, by scenario.Person) (*square, telegram.TopicID, scenario.Place) {
	if in == "" {
		in = scenario.Place(by)
	}
	name, _, _ := strings.Cut(string(in), "/")
	for _, c := range t.chats {
		if string(c.name) == name {
			return c, c.topics[in], in
		}
	}
	return nil, 0, in
}
