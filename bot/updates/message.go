package updates

import (
	"cmp"
	"time"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// Message is a parsed message of a permitted user that is meant for the bot.
type Message struct {
	Update       int64
	Conversation orchestrator.ConversationID
	User         orchestrator.PersonID
	Role         orchestrator.UserRole // of the sender
	ID           int
	ReplyTo      int    // the bot's message to which it replies; 0 for none
	Text         string // as Markdown, without the mention of the bot
	Plain        string // Text without the Markdown of its formatting
	Context      string // describes the quoted message or the origin of the text; empty, or ends in a line break
	Private      bool

	sent          original
	arrived       time.Time
	acknowledged  bool    // only the worker of its content uses it
	sender        string  // for agents: the sender is not a listed user; empty for listed users
	follows       bool    // a later message of the same batch may belong to it
	onlyWithAlbum bool    // it is for the bot only if another part of its album is
	merged        []int64 // updates of merged messages
	// Files contains the fetched files of the message and of messages merged into it.
	Files []orchestrator.Attachment
}

// NewMessage returns a message that is not in the chat, for example a text that the owner typed in a terminal. update
// is its update in the journal.
func NewMessage(by orchestrator.Press, update int64, text string) *Message {
	return &Message{
		Update: update, Conversation: by.Conversation, User: by.Person, Role: by.Role, Text: text, Plain: text,
		Private: !by.Conversation.Group(), arrived: by.Arrived,
	}
}

// Secret reports whether a HideFunc has hidden the text of the message.
func (in *Message) Secret() bool { return in.sent.secret }

// original contains the properties of a sent message that decide whether two messages form one prompt.
type original struct {
	date      int64
	forwarded bool // not written by the sender, so it is not a command, and the prompt fences it
	edited    bool
	secret    bool   // the text is hidden
	units     int    // UTF-16 units of the original text
	album     string // media group; empty outside of albums
	file      *fileRef
	reply     *reply // the message to which it replies; nil for none
}

// ofPaste reports whether the message may be a part of a split paste, other than the last part.
func (p *original) ofPaste() bool { return p.units > splitText && p.file == nil && !p.forwarded }

// Updates returns the ids of the message's update and of the updates merged into it.
func (in *Message) Updates() []int64 { return append([]int64{in.Update}, in.merged...) }

// reply is the message to which another message replies.
type reply struct {
	id     int
	words  string // as Markdown
	quoted bool   // the sender quoted a part, which is in the context
	file   *fileRef
}

// Arrived returns when ductor read the message.
func (in *Message) Arrived() time.Time { return in.arrived }

// By returns a Press with the conversation and the sender of the message.
func (in *Message) By() orchestrator.Press {
	return orchestrator.Press{
		Conversation: in.Conversation, Person: in.User, Role: in.Role, Updates: in.Updates(), Arrived: in.arrived,
	}
}

// Quote returns the id of the message in a group, so that the answer replies to it. In a private chat it returns 0.
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

// fileKind is the use of a file.
type fileKind string

// Kinds of files.
const (
	attached fileKind = ""       // attached to the prompt
	speech   fileKind = "speech" // transcribed into the prompt's text
)

// conversationOf returns the conversation of a message. A reply in a group without topics has a thread too, so the
// thread counts only if Telegram marks it as a topic.
func conversationOf(m *wireMessage) orchestrator.ConversationID {
	id := orchestrator.ConversationID{Chat: m.Chat.ID}
	if m.InTopic && m.Thread > 1 {
		id.Topic = m.Thread
	}
	return id
}

// parseMessage parses a message and removes the bot's mention.
func parseMessage(update int64, m *wireMessage, me Identity) *Message {
	text, entities := m.textAndEntities()
	in := &Message{
		Update: update, Conversation: conversationOf(m), User: orchestrator.PersonID(m.From.ID),
		ID: m.ID, Private: m.Chat.private(), Context: contextOf(m, me),
		sent: original{
			date: m.Date, forwarded: originOf(m) != "", secret: m.Secret, units: render.Len(text),
			album: m.MediaGroup, file: fileOf(m),
		},
	}
	if r := m.ReplyTo; r != nil && !isTopicStart(m, r) {
		in.sent.reply = &reply{
			id: r.ID, words: markdownOf(r.textAndEntities()), quoted: m.Quote != nil, file: fileOf(r),
		}
		if me.wrote(r) {
			in.ReplyTo = r.ID
		}
	}
	if !in.sent.forwarded && !in.Private {
		text, entities = withoutMention(text, entities, me)
	}
	in.Plain, in.Text = text, markdownOf(text, entities)
	if in.sent.forwarded {
		in.Text = fencedText(in.Text)
	}
	return in
}

// markdownOf converts a text of Telegram to Markdown.
func markdownOf(text string, entities []wireEntity) string {
	t := render.Text{Text: text}
	for _, e := range entities {
		t.Entities = append(t.Entities, render.Entity{
			Kind: render.Kind(e.Type), Offset: e.Offset, Length: e.Length, URL: e.URL, Language: e.Language,
		})
	}
	return render.Source(t)
}

func fileOf(m *wireMessage) *fileRef {
	if d := m.Document; d != nil {
		return &fileRef{id: d.FileID, name: d.Name, mime: d.MIME, size: d.Size}
	}
	for name, f := range map[string]*wireFile{
		"voice.ogg": m.Voice, "audio.mp3": m.Audio, "video-note.mp4": m.VideoNote,
	} {
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

// pictureMIME reports whether agents accept a MIME type as a picture.
func pictureMIME(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// isTopicStart reports whether r is the service message that opened the topic. Every message in a topic has this
// message as its reply.
func isTopicStart(m, r *wireMessage) bool {
	return r.TopicCreated != nil || m.InTopic && r.ID == m.Thread
}
