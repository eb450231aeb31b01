package bot

import (
	"time"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// incoming is a message of an allowed person that is meant for us, read but not yet acted on.
type incoming struct {
	update    int64
	conv      orchestrator.ConversationID
	person    orchestrator.PersonID
	rights    orchestrator.RightsOf // RightsOfMember: the sender may send prompts, and nothing else
	message   int
	date      int64
	arrived   time.Time // when ductor read it
	private   bool
	replyTo   int  // the message of ours that it answers to; 0 for none
	forwarded bool // the sender did not write it: it is no command, and fenced in the prompt
	edited    bool
	units     int    // UTF-16 units of the text as it was sent
	album     string // media group; empty outside albums
	text      string // without our mention
	sender    string // who sends it, for the agent to know that it is no listed user; empty for one
	context   string // what the text answers to or where it comes from; empty or ending in a line break
	file      *fileRef

	acknowledged bool // the receipt was given; only the worker of the content touches it
}

// updates lists the one update of in, to be finished.
func (in *incoming) updates() []int64 { return []int64{in.update} }

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
		forwarded: originOf(m) != "",
		units:     render.Len(text), album: m.MediaGroup,
		file: fileOf(m), context: contextOf(m, me),
	}
	if r := m.ReplyTo; me.wrote(r) && !isTopicStart(m, r) {
		in.replyTo = r.ID
	}
	switch {
	case in.forwarded:
		in.text = fencedText(text)
	case in.private:
		in.text = text
	default:
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

// isTopicStart says whether r is the service message that opened the topic: everything in a topic
// "answers" to it.
func isTopicStart(m, r *wireMessage) bool {
	return r.TopicCreated != nil || m.InTopic && r.ID == m.Thread
}
