package project_test

import (
	"context"
	"errors"
	"testing"

	"ductor/bot/project"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// topics is a chat whose topics are numbered from 50 on.
type topics struct {
	names []string
	wants map[orchestrator.ConversationID]orchestrator.Wants
	err   error
}

func (f *topics) OpenTopic(_ context.Context, _ int64, name string) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	f.names = append(f.names, name)
	return 50 + len(f.names), nil
}

func (f *topics) Named(_ context.Context, _ orchestrator.ConversationID, name string) (orchestrator.Wants, bool) {
	switch name {
	case "gpt":
		return orchestrator.Wants{Agent: "codex", Model: "gpt"}, true
	case "codex":
		return orchestrator.Wants{Agent: "codex"}, true
	}
	return orchestrator.Wants{}, false
}

func (f *topics) SetModel(_ context.Context, in orchestrator.ConversationID, w orchestrator.Wants) error {
	f.wants[in] = w
	return nil
}

func TestATopicIsOpenedForAProject(t *testing.T) {
	const group, user = -1001234, 7
	fault := func(kind tgapi.FaultKind) error {
		return tgapi.NewCallError("createForumTopic", tgapi.Fault{Kind: kind}, nil, tgapi.NewScrubber("token"))
	}
	help := "/newtopic app opens a topic that works in the project app; /newtopic app codex chooses the agent too. /project lists the projects."
	for _, c := range []struct {
		name, args  string
		chat        int64
		err         error
		text, first string
	}{
		{"in a group", "web", group, nil, "The topic web is open.\nhttps://t.me/c/1234/51", "The agent works in /src/web here. Write what it should do."},
		{"in a private chat", "web", user, nil, "The topic web is open.", "The agent works in /src/web here. Write what it should do."},
		{"with an agent", "app codex", user, nil, "The topic app is open.", "Codex works in /src/app here. Write what it should do."},
		{"with a model", "app gpt", user, nil, "The topic app is open.", "Codex · gpt works in /src/app here. Write what it should do."},
		{"without a project", " ", user, nil, help, ""},
		{"with too many words", "app codex high", user, nil, help, ""},
		{"an unknown project", "none codex", user, nil, `There is no project "none". /project lists them.`, ""},
		{"an unknown agent", "app cursor", user, nil, `There is no agent and no model "cursor". /model lists them.`, ""},
		{"without the right", "app", group, fault(tgapi.NoTopicRight), "I may not open topics here. Make me an admin who may manage topics.", ""},
		{"in a group without topics", "app", group, fault(tgapi.NoTopics), "This group has no topics. Turn them on in the group's settings first.", ""},
		{"in a chat without topics", "app", user, fault(tgapi.NoTopics), "This chat has no topics. Turn on the threaded mode of this bot in @BotFather first.", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			f := &topics{wants: map[orchestrator.ConversationID]orchestrator.Wants{}, err: c.err}
			s := project.New(project.Options{Projects: r.fakeProjects, Topics: f})
			in := orchestrator.ConversationID{Chat: c.chat, Topic: 3}
			o, err := s.NewTopic(t.Context(), orchestrator.Press{Conversation: in, Person: user, Role: orchestrator.RoleUser}, c.args)
			if err != nil || o.Text != c.text || o.First != c.first {
				t.Fatalf("it answers %q, then %q, %v", o.Text, o.First, err)
			}
			want := orchestrator.ConversationID{}
			if c.first != "" {
				want = orchestrator.ConversationID{Chat: c.chat, Topic: 51}
			}
			if o.In != want || len(f.names) != min(want.Topic, 1) {
				t.Errorf("the topics %q were opened, the last as %v", f.names, o.In)
			}
			if c.args == "app codex" && f.wants[want].Agent != "codex" {
				t.Errorf("it chose %v", f.wants)
			}
		})
	}
}

func TestATroubleWithTelegramIsNoAnswer(t *testing.T) {
	r := newRig(t)
	f := &topics{err: errors.New("the network is down")}
	s := project.New(project.Options{Projects: r.fakeProjects, Topics: f})
	if o, err := s.NewTopic(t.Context(), orchestrator.Press{}, "app"); !errors.Is(err, f.err) {
		t.Errorf("it answers %q, %v", o.Text, err)
	}
}
