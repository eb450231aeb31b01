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
	Rich     []render.Block `json:"rich,omitempty"`      // replaces Text, the fallback if Telegram rejects it
	OnlyRich bool           `json:"only_rich,omitempty"` // do not send the message if Rich cannot be shown
	Keyboard tgapi.Keyboard `json:"keyboard,omitempty"`
	ReplyTo  int            `json:"reply_to,omitempty"` // 0 for none
	Silent   bool           `json:"silent,omitempty"`
	// the message consists of these files, several as an album; Text is the first one's caption
	Files     []File    `json:"files,omitempty"`
	Unknown   bool      `json:"-"` // the rest of the shown content is unknown: only change the buttons
	Mark      int64     `json:"-"` // stored with the message once it is sent
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`
}

// File is an attached file. If it is a text, the store holds it until it is sent. The spool holds any other content.
type File struct {
	Name    string `json:"name"`
	Content string `json:"content,omitempty"`
	Spooled string `json:"spooled,omitempty"` // its name in the spool
	Picture bool   `json:"picture,omitempty"` // shown as a picture, unless Telegram rejects that
	Caption string `json:"caption,omitempty"` // caption of a file in an album
}

// Lifecycle is the lifecycle of a message.
type Lifecycle int

// Lifecycles of a message.
const (
	Keep            Lifecycle = iota
	ResendIfDeleted           // sent again, once, if a user deletes it
	Growing                   // not finished: the store still has content to send
	DeleteWhenDone            // deleted when done; if Telegram does not delete it, it shows the text
	ResendIfUnknown           // sent again if it is unknown whether it arrived: the chat may show it twice
	EditOnly                  // the last edit of a message; dropped if the message is not in the chat
)

// carried reports whether a single Telegram call can carry all of the content. An album has no buttons, and a file has
// no rich content.
func (c Content) carried() bool {
	return len(c.Files) == 0 || c.Rich == nil && (len(c.Files) == 1 || len(c.Keyboard) == 0)
}

// Encode returns the content in the store's format.
func (c Content) Encode() []byte {
	data, _ := json.Marshal(c) // cannot fail: the content has only strings and numbers
	return data
}

func decode(data []byte) (c Content, err error) {
	old := struct {
		*Content
		Document *File `json:"document"` // written by an old version, which supported one file
	}{Content: &c}
	if err := json.Unmarshal(data, &old); err != nil {
		return Content{}, fmt.Errorf("decode the content of a message: %w", err)
	}
	if old.Document != nil {
		c.Files = []File{*old.Document}
	}
	return c, nil
}

// fingerprint returns equal strings for contents that look the same in a chat.
func (c Content) fingerprint() string {
	if c.Rich != nil {
		rich, _ := json.Marshal(c.Rich) // cannot fail, see Encode
		c.Text = render.Text{Text: string(rich)}
	}
	return render.Fingerprint(c.Text) + fmt.Sprint(c.Keyboard, c.Unknown)
}

// Digest returns a Mark that lets the next process recognize the content a message showed when it was sent. It is
// negative.
func (c Content) Digest() int64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, c.fingerprint()) // never fails
	return int64(h.Sum64() | 1<<63)
}
