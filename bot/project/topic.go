package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// Topics opens topics in chats, and finds and sets models.
type Topics interface {
	// OpenTopic opens a topic and returns its ID. It returns the same errors as tgapi.Client.OpenTopic.
	OpenTopic(ctx context.Context, chat int64, name string) (int, error)
	// Named looks up an agent or a model by name. It returns false if the name is unknown.
	Named(ctx context.Context, in orchestrator.ConversationID, name string) (orchestrator.Wants, bool)
	// SetModel sets the agent and the model of a conversation.
	SetModel(ctx context.Context, in orchestrator.ConversationID, w orchestrator.Wants) error
}

// Opened describes what "/newtopic" has done.
type Opened struct {
	Text  string                      // reply to the command
	In    orchestrator.ConversationID // the new topic; zero if no topic was opened
	First string                      // the first message in the new topic
}

// NewTopic handles "/newtopic": it opens a topic in which agents work in a certain project. args contains the name of
// the project. The name of an agent or a model for the topic may follow. Each call opens another topic.
func (s *Screen) NewTopic(ctx context.Context, by orchestrator.Press, args string) (Opened, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	words := strings.Fields(args)
	if len(words) == 0 || len(words) > 2 {
		return Opened{Text: p.Text("project.topic-help")}, nil
	}
	name, wants := words[0], orchestrator.Wants{}
	all, err := s.o.Projects.Projects(ctx)
	if err != nil {
		return Opened{}, err
	}
	if !slices.ContainsFunc(all, func(p orchestrator.Project) bool { return p.Name == name }) {
		return Opened{Text: s.refusal(p, name, "", orchestrator.ErrNoProject)}, nil
	}
	if len(words) == 2 {
		var known bool
		if wants, known = s.o.Topics.Named(ctx, by.Conversation, words[1]); !known {
			return Opened{Text: p.Text("project.no-agent", render.Cut(words[1], 100))}, nil
		}
	}
	in := orchestrator.ConversationID{Chat: by.Conversation.Chat}
	in.Topic, err = s.o.Topics.OpenTopic(ctx, in.Chat, name)
	if text := s.noTopic(in, err); text != "" {
		return Opened{Text: text}, nil
	}
	if err != nil {
		return Opened{}, err
	}
	return s.setUpTopic(ctx, orchestrator.Press{Conversation: in, Person: by.Person, Role: by.Role}, name, wants)
}

// setUpTopic sets the project and the model of a new topic.
func (s *Screen) setUpTopic(
	ctx context.Context, by orchestrator.Press, name string, wants orchestrator.Wants,
) (Opened, error) {
	dir, err := s.o.Projects.OpenProject(ctx, by, name, "")
	if err != nil {
		return Opened{}, fmt.Errorf("open the project of a topic: %w", err)
	}
	if wants.Agent != "" {
		if err := s.o.Topics.SetModel(ctx, by.Conversation, wants); err != nil {
			return Opened{}, fmt.Errorf("choose the agent of a topic: %w", err)
		}
	}
	p := s.o.Lang.Of(by.Conversation.Chat)
	o := Opened{
		In: by.Conversation, Text: p.Text("project.topic-opened", name), First: p.Text("project.topic-first", dir),
	}
	if wants.Agent != "" {
		who := render.AgentName(p, wants.Agent)
		if wants.Model != "" {
			who = render.ChoiceText(p, wants.Agent, wants.Model, wants.Effort)
		}
		o.First = p.Text("project.topic-first-with", who, dir)
	}
	if link := tgapi.TopicLink(o.In); link != "" {
		o.Text += "\n" + link
	}
	return o, nil
}

// noTopic explains to users why Telegram did not open a topic in a chat. It returns "" for unexpected errors.
func (s *Screen) noTopic(in orchestrator.ConversationID, err error) string {
	p := s.o.Lang.Of(in.Chat)
	switch kind := tgapi.FaultOf(err).Kind; {
	case kind == tgapi.NoTopicRight:
		return p.Text("project.topic-right")
	case kind == tgapi.NoTopics && in.Group():
		return p.Text("project.no-forum")
	case kind == tgapi.NoTopics:
		return p.Text("project.no-threads")
	}
	return ""
}
