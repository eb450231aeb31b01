package message

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"

	"ductor/bot/render"
	"ductor/bot/tgapi"
)

// Content is what a message is to show, and how it gets to show that.
type Content struct {
	render.Text
	Rich     []render.Block `json:"rich,omitempty"`      // is shown instead of Text; Text is for where Telegram refuses it
	OnlyRich bool           `json:"only_rich,omitempty"` // without Rich the message means nothing, and is not sent
	Keyboard tgapi.Keyboard `json:"keyboard,omitempty"`
	ReplyTo  int            `json:"reply_to,omitempty"` // 0 for none
	Silent   bool           `json:"silent,omitempty"`
	Files    []File         `json:"files,omitempty"` // the message is these, several as an album; Text is below the first
	Unknown  bool           `json:"-"`               // nobody knows what else the message shows: only its buttons change
	Mark     int64          `json:"-"`               // is stored with a message that is sent
	Life     Life           `json:"-"`
}

// File is a file that a message brings. A text is kept in the store until it is sent, any other content in the spool.
type File struct {
	Name    string `json:"name"`
	Content string `json:"content,omitempty"`
	Spooled string `json:"spooled,omitempty"` // its name in the spool
	Picture bool   `json:"picture,omitempty"` // shown as a picture, unless Telegram refuses that
	Caption string `json:"caption,omitempty"` // below a file of an album
}

// Life says what else becomes of a message.
type Life int

// The lives of messages.
const (
	Stays     Life = iota
	Returns        // it is sent again, once, if a user deletes it
	Changes        // it is to show something else yet: what the store has of it stays owed
	Goes           // it is deleted; where Telegram does not delete it, it shows the text
	OnlyEdits      // it is the end of the message, which is not sent for it if the chat does not have it
)

// carried reports whether one call of Telegram carries all of the content: an album has no buttons, and a file no rich content.
func (c Content) carried() bool {
	return len(c.Files) == 0 || c.Rich == nil && (len(c.Files) == 1 || len(c.Keyboard) == 0)
}

// Encode gives the content as the store keeps it.
func (c Content) Encode() []byte {
	data, _ := json.Marshal(c) // cannot fail: the content has strings and numbers only
	return data
}

func decode(data []byte) (c Content, err error) {
	old := struct {
		*Content
		Document *File `json:"document"` // of a version that knew one file
	}{Content: &c}
	if err := json.Unmarshal(data, &old); err != nil {
		return Content{}, fmt.Errorf("decode the content of a message: %w", err)
	}
	if old.Document != nil {
		c.Files = []File{*old.Document}
	}
	return c, nil
}

// fingerprint is equal for contents that look the same in a chat.
func (c Content) fingerprint() string {
	if c.Rich != nil {
		rich, _ := json.Marshal(c.Rich) // cannot fail, see Encode
		c.Text = render.Text{Text: string(rich)}
	}
	return render.Fingerprint(c.Text) + fmt.Sprint(c.Keyboard, c.Unknown)
}

// Digest is a Mark by which the next process knows what a message showed when it was sent. It is below zero.
func (c Content) Digest() int64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, c.fingerprint()) // never fails
	return int64(h.Sum64() | 1<<63)
}
