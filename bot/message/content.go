package message

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"

	"ductor/bot/render"
	"ductor/bot/tgapi"
)

// Content is the content of a message: its text, files and buttons, and the way to send them.
type Content struct {
	render.Text
	Rich     []render.Block `json:"rich,omitempty"`      // shown instead of Text, if Telegram accepts rich messages
	OnlyRich bool           `json:"only_rich,omitempty"` // true if no message is sent when Telegram rejects Rich
	Keyboard tgapi.Keyboard `json:"keyboard,omitempty"`
	ReplyTo  int            `json:"reply_to,omitempty"` // ID of the message to which this message replies; 0: no reply
	Silent   bool           `json:"silent,omitempty"`
	// If Files is not empty, the message consists of a file, or of several files as an album. Text is the caption of
	// the first file.
	Files     []File    `json:"files,omitempty"`
	Unknown   bool      `json:"-"` // true if the current text is unknown, so that only the buttons are edited
	Mark      int64     `json:"-"` // identifies this content in the database; see orchestrator.Message
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`
}

// File is a file to send. Text content is stored in the database, other content in the spool.
type File struct {
	Name    string `json:"name"`
	Content string `json:"content,omitempty"`
	Spooled string `json:"spooled,omitempty"` // name of the file in the spool
	Picture bool   `json:"picture,omitempty"` // send as a picture, or as a document if Telegram rejects the picture
	Caption string `json:"caption,omitempty"` // only for files of an album
}

// Lifecycle defines whether a message is sent again or deleted later.
type Lifecycle int

const (
	Keep            Lifecycle = iota
	ResendIfDeleted           // if a user deletes the message, send it again once
	Growing                   // this content is temporary; later, the content in the database must replace it
	DeleteWhenDone            // delete the message; if Telegram does not allow this, show the text
	ResendIfUnknown           // if Telegram does not confirm the message, send it again; it may appear twice
	EditOnly                  // this content is final: edit a message in the chat, but send no new message
)

// carried reports whether one request can send the whole content. Albums cannot have buttons, and messages with files
// cannot be rich.
func (c Content) carried() bool {
	return len(c.Files) == 0 || c.Rich == nil && (len(c.Files) == 1 || len(c.Keyboard) == 0)
}

// Encode returns the content in the format of the database.
func (c Content) Encode() []byte {
	data, _ := json.Marshal(c) // cannot fail for these types
	return data
}

func decode(data []byte) (c Content, err error) {
	old := struct {
		*Content
		Document *File `json:"document"` // field of older versions of ductor, which sent at most one file per message
	}{Content: &c}
	if err := json.Unmarshal(data, &old); err != nil {
		return Content{}, fmt.Errorf("decode the content of a message: %w", err)
	}
	if old.Document != nil {
		c.Files = []File{*old.Document}
	}
	return c, nil
}

// fingerprint returns a string that is equal for two contents that look the same in a chat.
func (c Content) fingerprint() string {
	if c.Rich != nil {
		rich, _ := json.Marshal(c.Rich)
		c.Text = render.Text{Text: string(rich)}
	}
	return render.Fingerprint(c.Text) + fmt.Sprint(c.Keyboard, c.Unknown)
}

// Digest returns a hash of the content for use as Content.Mark. The next process compares the hash with the mark of the
// sent message. The hash is always negative.
func (c Content) Digest() int64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, c.fingerprint()) // never fails
	return int64(h.Sum64() | 1<<63)
}
