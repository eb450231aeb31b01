package demo

import (
	"time"

	"ductor/internal/sim/telegram"
)

// The following types define the JSON that the page gets. Times are milliseconds since 1970.

type wireHello struct {
	Chats    []wireChat    `json:"chats"`
	Users    []wireUser    `json:"users"`
	Commands []wireCommand `json:"commands"`
	Bot      string        `json:"bot"`
	Dir      string        `json:"dir"`
	Version  string        `json:"version"`
	Tour     bool          `json:"tour"`
	Other    string        `json:"other"`
}

type wireUser struct {
	ID   telegram.UserID `json:"id"`
	Name string          `json:"name"`
	Note string          `json:"note"`
}

type wireCommand struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type wireChat struct {
	ID     telegram.ChatID   `json:"id"`
	Kind   telegram.ChatKind `json:"kind"`
	Title  string            `json:"title"`
	Forum  bool              `json:"forum"`
	Topics []wireTopic       `json:"topics"`
	Users  []telegram.UserID `json:"users"` // users who may write in the chat
	Typing *wireTyping       `json:"typing,omitempty"`
	Drafts []wireDraft       `json:"drafts"`
}

type wireTopic struct {
	ID     telegram.TopicID `json:"id"`
	Name   string           `json:"name"`
	Closed bool             `json:"closed"`
}

type wireTyping struct {
	Kind  string           `json:"kind"`
	Topic telegram.TopicID `json:"topic"`
	At    int64            `json:"at"`
}

type wireDraft struct {
	Topic    telegram.TopicID  `json:"topic"`
	Text     string            `json:"text"`
	Entities []telegram.Entity `json:"entities"`
}

type wireMessage struct {
	ID        telegram.MessageID  `json:"id"`
	Chat      telegram.ChatID     `json:"chat"`
	Topic     telegram.TopicID    `json:"topic"`
	From      telegram.UserID     `json:"from"`
	Name      string              `json:"name"`
	Bot       bool                `json:"bot"`
	Date      int64               `json:"date"`
	Edited    int64               `json:"edited"`
	Text      string              `json:"text"`
	Entities  []telegram.Entity   `json:"entities"`
	Rich      []telegram.Block    `json:"rich,omitempty"`
	Keyboard  [][]telegram.Button `json:"keyboard"`
	ReplyTo   telegram.MessageID  `json:"replyTo"`
	Media     *wireMedia          `json:"media,omitempty"`
	Album     string              `json:"album"`
	Reactions []wireReaction      `json:"reactions"`
	Pinned    bool                `json:"pinned"`
	Silent    bool                `json:"silent"`
	Service   string              `json:"service"`
}

type wireMedia struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
	MIME string `json:"mime"`
	Size int64  `json:"size"`
}

type wireReaction struct {
	From  telegram.UserID `json:"from"`
	Emoji string          `json:"emoji"`
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func wireOf(m telegram.Message) wireMessage {
	w := wireMessage{
		ID: m.ID, Chat: m.Chat, Topic: m.Topic, From: m.From.ID, Name: m.From.Name, Bot: m.From.Bot,
		Date: millis(m.Date), Edited: millis(m.Edited), Text: m.Text, Entities: m.Entities, Rich: m.Rich,
		Keyboard: m.Keyboard,
		ReplyTo:  m.ReplyTo, Album: m.Album, Pinned: m.Pinned, Silent: m.Silent, Service: m.Service,
	}
	if m.Media != nil {
		w.Media = &wireMedia{m.Media.Kind, m.Media.FileID, m.Media.Name, m.Media.MIME, m.Media.Size}
	}
	for _, r := range m.Reactions {
		w.Reactions = append(w.Reactions, wireReaction(r))
	}
	return w
}

func wireChatOf(c *telegram.Chat, v telegram.View) wireChat {
	info := c.Info()
	w := wireChat{ID: info.ID, Kind: info.Kind, Title: info.Title, Forum: info.Forum,
		Users: []telegram.UserID{You, Sam, Visitor}}
	if info.Kind == telegram.PrivateChat {
		w.Users = []telegram.UserID{telegram.UserID(info.ID)}
		w.Title = "ductor"
	}
	for _, t := range info.Topics {
		w.Topics = append(w.Topics, wireTopic{ID: t.ID, Name: t.Name, Closed: t.Closed})
	}
	if !v.Action.At.IsZero() {
		w.Typing = &wireTyping{v.Action.Kind, v.Action.Topic, millis(v.Action.At)}
	}
	for _, d := range v.Drafts {
		w.Drafts = append(w.Drafts, wireDraft{d.Topic, d.Text, d.Entities})
	}
	return w
}
