package tgapi

import (
	"strconv"
	"strings"
	"sync"

	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// ChatNames remembers the names of groups and users from updates. The zero value is ready for use. It is safe for
// concurrent use.
type ChatNames struct{ titles, users sync.Map }

// Learn stores the name of a chat. Private chats have no name.
func (n *ChatNames) Learn(chat int64, title string) {
	if title != "" {
		n.titles.Store(chat, title)
	}
}

// LearnUser stores the name of a user.
func (n *ChatNames) LearnUser(id orchestrator.PersonID, name string) { n.users.Store(id, name) }

// User returns the name of a user, or "" if the name is unknown.
func (n *ChatNames) User(id orchestrator.PersonID) string {
	if n == nil {
		return ""
	}
	name, _ := n.users.Load(id)
	text, _ := name.(string)
	return render.ShortLine(text, 60)
}

// Chat returns the name of a conversation. For a group, this is its title with the number of the topic. For a private
// chat, it is the name of the user. If the name is unknown, Chat returns the key of the conversation.
func (n *ChatNames) Chat(in orchestrator.ConversationID) string {
	in = in.Shown()
	name := n.User(orchestrator.PersonID(in.Chat))
	if n != nil && in.Group() {
		title, _ := n.titles.Load(in.Chat)
		text, _ := title.(string)
		name = render.ShortLine(text, 60)
	}
	switch {
	case name == "":
		return string(in.Key())
	case in.Topic != 0:
		return name + "/" + strconv.Itoa(in.Topic)
	}
	return name
}

// Where describes a conversation, for example "in the group Family". The description is for users in the conversation
// readBy.
func (n *ChatNames) Where(p lang.Printer, readBy, conversation orchestrator.ConversationID) string {
	title, known := n.titles.Load(conversation.Chat)
	switch {
	case conversation == readBy:
		return p.Text("common.in-this-chat")
	case conversation.Chat == readBy.Chat:
		return strings.TrimSpace(p.Text("common.in-another-topic") + " " + TopicLink(conversation))
	case !conversation.Group():
		return p.Text("common.in-private-chat")
	case known:
		return p.Text("common.in-group", render.ShortLine(title.(string), 60))
	}
	return p.Text("common.in-another-group")
}

// TopicLink returns a link to a topic of a supergroup, or "" for a private chat, which has no links.
func TopicLink(in orchestrator.ConversationID) string {
	id, super := strings.CutPrefix(strconv.FormatInt(in.Chat, 10), "-100")
	if !super {
		return ""
	}
	return "https://t.me/c/" + id + "/" + strconv.Itoa(in.Topic)
}
