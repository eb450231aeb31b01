package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// /newtopic opens a topic with the project's name, in which the named agent works in the project. The original chat
// keeps its project. If no topic can be opened, the chat says why.
func TestATopicIsOpenedForAProject(t *testing.T) {
	const id = -1000000000042
	town := newTown(t, func(cfg *config.Config) {
		cfg.Telegram.AllowedGroups, cfg.Telegram.GroupTrigger = []int64{id}, "all"
		cfg.Rate.GroupPerMinute, cfg.Permissions.Mode = 6000, "bypass"
		cfg.Projects.Named = map[string]orchestrator.ProjectPolicy{"shop": {Dir: filepath.Join(cfg.Projects.Roots[0], "shop")}}
		if err := os.Mkdir(cfg.Projects.Named["shop"].Dir, 0o755); err != nil {
			t.Fatal(err)
		}
	})
	private, user := town.chat, town.chat.Person()
	forum := town.srv.Forum(id, "Team")
	dir := town.cfg.Projects.Named["shop"].Dir
	opened := func(c *telegram.Chat) telegram.TopicID {
		t.Helper()
		for id, topic := range c.Topics() {
			if topic.Name == "shop" {
				return id
			}
		}
		t.Fatalf("the topics are %v", c.Topics())
		return 0
	}

	town.chat = forum
	user.Send(forum, "/newtopic shop codex")
	answer := town.await("The topic shop is open.\nhttps://t.me/c/")
	first := town.await("Codex works in " + dir + " here.")
	topic := opened(forum)
	if answer.Topic != 0 || first.Topic != topic {
		t.Errorf("topic %d is announced in %d, and begins in %d", topic, answer.Topic, first.Topic)
	}
	user.Send(forum, `go [[write path="made.txt" text="by codex"]] [[text "written"]]`, telegram.InTopic(topic))
	if m := town.awaitDone(1); m.Topic != topic || !strings.Contains(m.Text, "\n\ngpt-") {
		t.Errorf("topic %d shows %q", m.Topic, m.Text)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "made.txt")); err != nil || string(text) != "by codex" {
		t.Errorf("the agent wrote %q, %v", text, err)
	}
	user.Send(forum, "/cwd")
	if m := town.await("The agent works in " + town.cfg.Projects.DefaultDir + "\n"); m.Topic != 0 {
		t.Errorf("General answers in topic %d", m.Topic)
	}

	forum.ForbidTopics()
	user.Send(forum, "/newtopic shop")
	town.await("I may not open topics here. Make me an admin who may manage topics.")

	town.chat = private
	town.say("/newtopic shop")
	town.await("This chat has no topics.")
	private.EnableTopics()
	town.say("/newtopic none")
	town.await(`There is no project "none"`)
	town.say("/newtopic shop nonsense")
	town.await(`There is no agent and no model "nonsense".`)
	town.say("/newtopic shop")
	town.await("The topic shop is open.")
	if first := town.await("The agent works in " + dir + " here."); first.Topic != opened(private) ||
		len(private.Topics()) != 1 {
		t.Errorf("the topics are %v, and %d begins", private.Topics(), first.Topic)
	}
}

// The icon of a topic that ductor opened shows its agent's state. The icon of a user's topic does not change.
func TestATopicsIconSaysWhatItsAgentDoes(t *testing.T) {
	const id = -1000000000042
	town := newTown(t, func(cfg *config.Config) {
		cfg.Telegram.AllowedGroups, cfg.Telegram.GroupTrigger = []int64{id}, "all"
		cfg.Rate.GroupPerMinute, cfg.Permissions.Mode = 6000, "ask"
		cfg.Projects.Named = map[string]orchestrator.ProjectPolicy{"shop": {Dir: cfg.Projects.Roots[0]}}
	})
	user := town.chat.Person()
	town.chat = town.srv.Forum(id, "Team")
	theirs := user.Topic(town.chat, "theirs").ID
	user.Send(town.chat, "/newtopic shop")
	topic := town.await("works in").Topic
	ask := func(in telegram.TopicID) {
		user.Send(town.chat, `[[ask cmd="touch made.txt"]] [[text "made"]]`, telegram.InTopic(in))
		if _, err := town.chat.AwaitMessage(town.soon(), func(m telegram.Message) bool {
			return m.Topic == in && strings.Contains(m.Text, "touch made.txt") && len(m.Keyboard) > 0
		}); err != nil {
			town.fatal(err)
		}
	}
	ask(theirs)
	ask(topic)
	for _, want := range []string{"❓", "💬"} {
		eventually(t, "the icon "+want, func() bool {
			return telegram.TopicEmoji(town.chat.Topics()[topic].Icon) == want
		})
		if want == "❓" {
			user.Send(town.chat, "/abort", telegram.InTopic(topic))
		}
	}
	if icon := town.chat.Topics()[theirs].Icon; icon != "" {
		t.Errorf("the topic of a user has the icon %q", icon)
	}
}
