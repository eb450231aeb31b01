package bot

import (
	"strings"
	"unicode/utf16"

	"ductor/orchestrator"
)

// incoming is a message of an allowed person that is meant for us, read but not yet acted on.
type incoming struct {
	update    int64
	conv      orchestrator.ConversationID
	person    orchestrator.PersonID
	message   int
	date      int64
	private   bool
	replyTo   int // the message of ours that it answers to; 0 for none
	forwarded bool
	edited    bool
	units     int    // UTF-16 units of the text as it was sent
	album     string // media group; empty outside albums
	text      string // without our mention
	context   string // what the text answers to or where it comes from; empty or ending in a line break
	file      *fileRef

	acknowledged bool // the receipt was given; only the worker of the content touches it
}

// fileRef is a file that lies at Telegram.
type fileRef struct {
	id    string
	name  string
	mime  string
	size  int64
	image bool
}

// conversationOf is where a message belongs. Replies in groups without topics carry a thread too, so the
// thread counts only where Telegram says that it is a topic.
func conversationOf(m *wireMessage) orchestrator.ConversationID {
	id := orchestrator.ConversationID{Chat: m.Chat.ID}
	if m.InTopic && m.Thread > 1 {
		id.Topic = m.Thread
	}
	return id
}

// readMessage makes an incoming of a message. me strips our mention.
func readMessage(update int64, m *wireMessage, me identity) *incoming {
	text, entities := m.words()
	in := &incoming{
		update: update, conv: conversationOf(m), person: orchestrator.PersonID(m.From.ID),
		message: m.ID, date: m.Date, private: m.Chat.private(),
		forwarded: m.Forwarded != nil,
		units:     utf16Len(text), album: m.MediaGroup,
		file: fileOf(m), context: contextOf(m, me),
	}
	if r := m.ReplyTo; me.wrote(r) && !isTopicStart(m, r) {
		in.replyTo = r.ID
	}
	in.text = text
	if !in.private && !in.forwarded {
		in.text = withoutMention(text, entities, me)
	}
	return in
}

func fileOf(m *wireMessage) *fileRef {
	if d := m.Document; d != nil {
		return &fileRef{id: d.FileID, name: d.Name, mime: d.MIME, size: d.Size, image: pictureMIME(d.MIME)}
	}
	var best *wirePhoto
	for i, p := range m.Photo {
		if best == nil || p.Width*p.Height > best.Width*best.Height {
			best = &m.Photo[i]
		}
	}
	if best == nil {
		return nil
	}
	return &fileRef{id: best.FileID, name: "photo.jpg", mime: "image/jpeg", size: best.Size, image: true}
}

// pictureMIME lists what agents take as pictures.
func pictureMIME(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// quoteLimit bounds what is quoted before a prompt, in characters.
const quoteLimit = 4000

// contextOf says what a message answers to or where it was forwarded from.
func contextOf(m *wireMessage, me identity) string {
	var b strings.Builder
	if m.Forwarded != nil {
		b.WriteString("[Forwarded from " + m.Forwarded.name() + "]\n")
	}
	r := m.ReplyTo
	if r != nil && isTopicStart(m, r) {
		r = nil
	}
	quoted := ""
	switch {
	case m.Quote != nil:
		quoted = m.Quote.Text
	case r != nil && !me.wrote(r): // the agent knows its own words
		quoted, _ = r.words()
	}
	if quoted == "" {
		return b.String()
	}
	b.WriteString("[In reply to " + authorOf(r, me) + "]\n")
	for line := range strings.Lines(cut(quoted, quoteLimit)) {
		b.WriteString("> " + strings.TrimRight(line, "\n") + "\n")
	}
	b.WriteString("\n")
	return b.String()
}

// isTopicStart says whether r is the service message that opened the topic: everything in a topic
// "answers" to it.
func isTopicStart(m, r *wireMessage) bool {
	return r.TopicCreated != nil || m.InTopic && r.ID == m.Thread
}

func authorOf(r *wireMessage, me identity) string {
	switch {
	case r == nil:
		return "a message of another chat"
	case me.wrote(r):
		return "you"
	case r.SenderChat != nil:
		return r.SenderChat.Title
	case r.From != nil:
		return r.From.name()
	}
	return "somebody"
}

func (o *wireOrigin) name() string {
	switch {
	case o.User != nil:
		return o.User.name()
	case o.Chat != nil:
		return o.Chat.Title
	case o.Group != nil:
		return o.Group.Title
	case o.Hidden != "":
		return o.Hidden
	}
	return "somebody"
}

// cut shortens s to at most limit characters and says that it did.
func cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + " […]"
		}
	}
	return s
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}
