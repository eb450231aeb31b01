package message

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"

	"ductor/bot/render"
	"ductor/bot/tgapi"
)

// Content is the content of a message and the options for sending it.
type Content struct {
	render.Text
	Rich     []render.Block `json:"rich,omitempty"`      // shown instead of Text, unless Telegram rejects it
	OnlyRich bool           `json:"only_rich,omitempty"` // if Rich cannot be shown, do not send the message
	Keyboard tgapi.Keyboard `json:"keyboard,omitempty"`
	ReplyTo  int            `json:"reply_to,omitempty"` // the id of a message; 0 for none
	Silent   bool           `json:"silent,omitempty"`
	// Files are the only content of the message. Several files form an album. Text is the caption of the first file.
	Files     []File    `json:"files,omitempty"`
	Unknown   bool      `json:"-"` // the shown content is unknown, so change only the buttons
	Mark      int64     `json:"-"` // stored with the message once the message is sent
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`
}

// File is an attached file. The store contains the content of a text until it is sent. The spool contains any other
// content.
type File struct {
	Name    string `json:"name"`
	Content string `json:"content,omitempty"`
	Spooled string `json:"spooled,omitempty"` // name of the content in the spool
	Picture bool   `json:"picture,omitempty"` // send as a picture, or as a document if Telegram rejects the picture
	Caption string `json:"caption,omitempty"` // caption of a file in an album
}

// Lifecycle is the lifecycle of a message.
type Lifecycle int

// Lifecycles of a message.
const (
	Keep            Lifecycle = iota
	ResendIfDeleted           // sent again, once, if a user deletes it
	Growing                   // not final: the store contains other content to show later
	DeleteWhenDone            // deleted at the end; if Telegram cannot delete it, it shows the text
	ResendIfUnknown           // sent again if its outcome is unknown, so the chat may show it twice
	EditOnly                  // the last edit of a message; skipped if the message is not in the chat
)

// carried reports whether a single Telegram call can send all of the content. An album cannot have buttons, and a
// file cannot have rich content.
func (c Content) carried() bool {
	return len(c.Files) == 0 || c.Rich == nil && (len(c.Files) == 1 || len(c.Keyboard) == 0)
}

// Encode returns the content in the store's format.
func (c Content) Encode() []byte {
	data, _ := json.Marshal(c) // cannot fail, because the content has only strings and numbers
	return data
}

func decode(data []byte) (c Content, err error) {
	old := struct {
		*Content
		Document *File `json:"document"` // from an old version, which supported one file
	}{Content: &c}
	if err := json.Unmarshal(data, &old); err != nil {
		return Content{}, fmt.Errorf("decode the content of a message: %w", err)
	}
	if old.Document != nil {
		c.Files = []File{*old.Document}
	}
	return c, nil
}

// fingerprint returns a string that is equal for contents that look the same in a chat.
func (c Content) fingerprint() string {
	if c.Rich != nil {
		rich, _ := json.Marshal(c.Rich) // cannot fail, see Encode
		c.Text = render.Text{Text: string(rich)}
	}
	return render.Fingerprint(c.Text) + fmt.Sprint(c.Keyboard, c.Unknown)
}

// Digest returns a negative Mark that identifies the content. The next process compares it with the Mark of the
// message that was sent.
func (c Content) Digest() int64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, c.fingerprint()) // never fails
	return int64(h.Sum64() | 1<<63)
}
