package updates

import (
	"cmp"
	"time"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// Message is a message of an allowed user that is meant for us, read but not yet acted on.
type Message struct {
	Update       int64
	Conversation orchestrator.ConversationID
	User         orchestrator.PersonID
	Role         orchestrator.UserRole // of the sender
	ID           int
	ReplyTo      int    // the message of ours that it answers to; 0 for none
	Text         string // as Markdown, without our mention
	Plain        string // Text without the Markdown of its formatting
	Context      string // what the text answers to or where it comes from; empty or ending in a line break
	Private      bool

	receipt
	part
}

// receipt is when ductor read a message, and that it said so.
type receipt struct {
	arrived      time.Time
	acknowledged bool // only the worker of the content touches it
}

// part is what a message adds to a prompt, and what tells whether two messages make one.
type part struct {
	sender    string // says to the agent that the sender is no listed user; empty for a listed one
	date      int64
	forwarded bool // the sender did not write it: it is no command, and fenced in the prompt
	edited    bool
	units     int    // UTF-16 units of the text as it was sent
	album     string // media group; empty outside albums
	file      *fileRef
	reply     *reply // the message that it answers to; nil for none

	follows bool    // more of the sender came with it, which may belong to it
	unmeant bool    // it is for us only if another part of its album is
	merged  []int64 // the updates of other messages that are in it
	// Files are those that came with it and with the messages that are in it, once they are fetched.
	Files []orchestrator.Attachment
}

// Updates lists the updates of in, to be finished.
func (in *Message) Updates() []int64 { return append([]int64{in.Update}, in.merged...) }

// reply is what a message answers to.
type reply struct {
	id     int
	words  string // as Markdown
	quoted bool   // the sender chose a part of it, which stands in the context
	file   *fileRef
}

// Arrived is when ductor read the message.
func (in *Message) Arrived() time.Time { return in.arrived }

// By is the sender, as of a press in the conversation.
func (in *Message) By() orchestrator.Press {
	return orchestrator.Press{Conversation: in.Conversation, Person: in.User, Role: in.Role, Updates: in.Updates()}
}

// Quote is the message that an answer replies to: this one in a group, and none, 0, in a private chat.
func (in *Message) Quote() int {
	if in.Private {
		return 0
	}
	return in.ID
}

// fileRef is a file at Telegram.
type fileRef struct {
	id   string
	name string
	mime string
	size int64
	kind fileKind
}

// fileKind says what becomes of a file.
type fileKind string

// The kinds of files.
const (
	attached fileKind = ""       // it goes along with the prompt
	speech   fileKind = "speech" // it is turned into the text of the prompt
)

// conversationOf is the conversation of a message. Replies in groups without topics carry a thread too, so the
// thread counts only where Telegram says that it is a topic.
func conversationOf(m *wireMessage) orchestrator.ConversationID {
	id := orchestrator.ConversationID{Chat: m.Chat.ID}
	if m.InTopic && m.Thread > 1 {
		id.Topic = m.Thread
	}
	return id
}

// readMessage reads a message, without our mention.
func readMessage(update int64, m *wireMessage, me Identity) *Message {
	text, entities := m.words()
	in := &Message{
		Update: update, Conversation: conversationOf(m), User: orchestrator.PersonID(m.From.ID),
		ID: m.ID, Private: m.Chat.private(), Context: contextOf(m, me),
		part: part{
			date: m.Date, forwarded: originOf(m) != "", units: render.Len(text), album: m.MediaGroup, file: fileOf(m),
		},
	}
	if r := m.ReplyTo; r != nil && !isTopicStart(m, r) {
		in.reply = &reply{id: r.ID, words: markdownOf(r.words()), quoted: m.Quote != nil, file: fileOf(r)}
		if me.wrote(r) {
			in.ReplyTo = r.ID
		}
	}
	if !in.forwarded && !in.Private {
		text, entities = withoutMention(text, entities, me)
	}
	in.Plain, in.Text = text, markdownOf(text, entities)
	if in.forwarded {
		in.Text = fencedText(in.Text)
	}
	return in
}

// markdownOf is a text of Telegram as Markdown.
func markdownOf(text string, entities []wireEntity) string {
	t := render.Text{Text: text}
	for _, e := range entities {
		t.Entities = append(t.Entities, render.Entity{Kind: render.Kind(e.Type), Offset: e.Offset, Length: e.Length, URL: e.URL, Language: e.Language})
	}
	return render.Source(t)
}

func fileOf(m *wireMessage) *fileRef {
	if d := m.Document; d != nil {
		return &fileRef{id: d.FileID, name: d.Name, mime: d.MIME, size: d.Size}
	}
	for name, f := range map[string]*wireFile{"voice.ogg": m.Voice, "audio.mp3": m.Audio, "video-note.mp4": m.VideoNote} {
		if f != nil {
			return &fileRef{id: f.FileID, name: cmp.Or(f.Name, name), mime: f.MIME, size: f.Size, kind: speech}
		}
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
	return &fileRef{id: best.FileID, name: "photo.jpg", mime: "image/jpeg", size: best.Size}
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
