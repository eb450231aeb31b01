package updates

import (
	"cmp"

	"ductor/bot/render"
	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

// Message is a message for the bot from a user who may use the bot. It embeds a Press by the sender, so that it can be
// handled like a button press. The first of Updates is the ID of the message's own update, and the others are
// the IDs of the updates that were merged into this message.
type Message struct {
	orchestrator.Press
	ID      int
	ReplyTo int    // ID of the bot's message to which this message replies; 0: none
	Text    string // Markdown, without the bot's name
	Plain   string // Text without Markdown
	Context string // lines before the prompt, such as a quote of the message to which the prompt replies
	Private bool
	// Files contains the downloaded files of the message, and of messages merged into it.
	Files []orchestrator.Attachment

	sent         original
	sender       string // line that names the sender to the agent; used only if the sender has RoleMember
	unheard      error  // why the recording to which the message replies is missing; nil if it is not
	acknowledged bool   // the message has the 👀 reaction; only the goroutine that handles the message uses it
}

// NewMessage returns a message that did not come from Telegram, for example a text that the bot's owner typed in a
// terminal. update is the ID of the update that stores the message.
func NewMessage(by orchestrator.Press, update int64, text string) *Message {
	by.Updates = []int64{update}
	return &Message{Press: by, Text: text, Plain: text, Private: !by.Conversation.Group()}
}

// Update returns the ID of the message's own update.
func (in *Message) Update() int64 { return in.Updates[0] }

// Secret reports whether the text was removed because HideFunc reported it as a secret.
func (in *Message) Secret() bool { return in.sent.secret }

// original contains the properties of a sent message that decide whether other messages are merged with it.
type original struct {
	date      int64
	forwarded bool // the sender did not write the text, so the text is fenced and cannot be a command
	edited    bool
	secret    bool   // the text was removed, because it is a secret
	units     int    // length of the sent text in UTF-16 units
	album     string // Telegram's ID of the album; empty if the message is not in one
	file      *fileRef
	reply     *reply // message to which the sent message replies; nil if it is not a reply

	newSession bool   // the caption is a command that starts a new session with this prompt
	refusal    string // reply to an album with a command in the caption of a later file; empty for none

	follows       bool // true if the same batch of updates contains a message that may continue this message
	onlyWithAlbum bool // true if the file is meant for the bot only if another caption of the album mentions the bot
}

// ofPaste reports whether the message is so long that a Telegram app may have split a text. Another part may then
// follow.
func (p *original) ofPaste() bool { return p.units > splitText && p.file == nil && !p.forwarded }

type reply struct {
	id     int
	words  string // text as Markdown
	quoted bool   // the user selected a part of the text to quote; Message.Context contains this part
	file   *fileRef
}

// Quote returns the ID of the message to which an answer should reply. It returns 0 in a private chat, where answers
// need not be replies.
func (in *Message) Quote() int {
	if in.Private {
		return 0
	}
	return in.ID
}

// fileRef describes a file that was not downloaded yet.
type fileRef struct {
	id   string
	name string
	mime string
	size int64
	kind fileKind
}

// isSpeech reports whether the message is speech, which ductor transcribes.
func (in *Message) isSpeech() bool { return in.sent.file != nil && in.sent.file.kind == speech }

type fileKind string

const (
	attached fileKind = ""       // attached to the prompt
	speech   fileKind = "speech" // transcribed into the prompt's text
)

// conversationOf returns the conversation of a message. A message with a thread ID is not necessarily in a topic,
// because replies in groups without topics have thread IDs too.
func conversationOf(m *wireMessage) orchestrator.ConversationID {
	id := orchestrator.ConversationID{Chat: m.Chat.ID}
	if m.InTopic && m.Thread > 1 {
		id.Topic = m.Thread
	}
	return id
}

// parseMessage converts a message from Telegram. It removes the bot's name from the text.
func parseMessage(update int64, m *wireMessage, me Identity) *Message {
	text, entities := m.textAndEntities()
	in := &Message{
		Press: orchestrator.Press{
			Conversation: conversationOf(m), Person: orchestrator.PersonID(m.From.ID), Updates: []int64{update},
		},
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
		in.Text = fence.Text(in.Text)
	}
	return in
}

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
	if v := m.Video; v != nil { // agents get videos only as files
		return &fileRef{id: v.FileID, name: cmp.Or(v.Name, "video.mp4"), mime: v.MIME, size: v.Size}
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

// pictureMIME reports whether agents accept pictures of this MIME type.
func pictureMIME(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// isTopicStart reports whether r is the service message at the start of a topic. Telegram presents every message in a
// topic as a reply to that service message.
func isTopicStart(m, r *wireMessage) bool {
	return r.TopicCreated != nil || m.InTopic && r.ID == m.Thread
}
