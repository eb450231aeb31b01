package telegram

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Reaction is an emoji that a user or the bot has put on a message.
type Reaction struct {
	From  UserID
	Emoji string
}

// allowedReactions contains the emoji that Telegram accepts as reactions, without variation selectors.
const allowedReactions = "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 " +
	"💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡"

// ReactionAllowed reports whether Telegram accepts an emoji as a reaction.
func ReactionAllowed(emoji string) bool {
	return emoji != "" && slices.Contains(strings.Fields(allowedReactions), emoji)
}

type reactionType struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji,omitempty"`
}

func (s *Server) setMessageReaction(q *request) (any, *Error) {
	emoji, err := q.reaction()
	if err != nil {
		return nil, err
	}
	c, err := s.target(q, "chat_id", writing)
	if err != nil {
		return nil, err
	}
	m := c.find(q.messageID("message_id"))
	if m == nil {
		return nil, badRequest("message to react not found")
	}
	m.react(s.opts.BotID, emoji)
	return true, nil
}

// reaction returns the emoji in a call, or "". A bot can put at most one emoji on a message.
func (q *request) reaction() (string, *Error) {
	text := q.params["reaction"]
	if text == "" {
		return "", nil
	}
	var list []reactionType
	if json.Unmarshal([]byte(text), &list) != nil {
		return "", badRequest("can't parse reaction types JSON object")
	}
	switch {
	case len(list) == 0:
		return "", nil
	case len(list) > 1:
		return "", badRequest("REACTIONS_TOO_MANY")
	case list[0].Type != "emoji" || !ReactionAllowed(list[0].Emoji):
		return "", badRequest("REACTION_INVALID")
	}
	return list[0].Emoji, nil
}

// react sets the reaction of a user and returns the user's previous reaction. An empty emoji removes the reaction.
// Other values may share the slice of reactions, so react replaces the slice and never changes it.
func (m *message) react(who UserID, emoji string) (before string) {
	list := slices.Clone(m.Reactions)
	list = slices.DeleteFunc(list, func(r Reaction) bool {
		if r.From == who {
			before = r.Emoji
		}
		return r.From == who
	})
	if emoji != "" {
		list = append(list, Reaction{who, emoji})
	}
	slices.SortFunc(list, func(a, b Reaction) int { return cmp.Compare(a.From, b.From) })
	m.Reactions = list
	m.chat.touch()
	return before
}

// React puts an emoji on a message. An empty emoji removes the user's reaction. The bot gets a message_reaction update
// if it has subscribed to these updates and, in a group, is an administrator.
func (p *Person) React(on Message, emoji string) {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.live(on)
	if m == nil {
		return
	}
	before := m.react(p.id, emoji)
	if m.chat.kind != PrivateChat && m.chat.bot != Administrator {
		return
	}
	s.push("message_reaction", map[string]any{
		"chat": m.chat.wire(), "message_id": m.ID, "user": p.wire(), "date": s.now().Unix(),
		"old_reaction": reactionList(before), "new_reaction": reactionList(emoji),
	})
}

func reactionList(emoji string) []reactionType {
	if emoji == "" {
		return []reactionType{}
	}
	return []reactionType{{"emoji", emoji}}
}
