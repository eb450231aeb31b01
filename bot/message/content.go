package message

import (
	"encoding/json"
	"fmt"

	"ductor/bot/render"
	"ductor/bot/tgapi"
)

// Content is what a message is to show, and how it gets to show that.
type Content struct {
	render.Text
	Keyboard tgapi.Keyboard `json:"keyboard,omitempty"`
	ReplyTo  int            `json:"reply_to,omitempty"` // 0 for none
	Silent   bool           `json:"silent,omitempty"`
	File     string         `json:"-"`                  // the message is a document with this text
	Document *Document      `json:"document,omitempty"` // the message is this document, with Text below it; nil for none
	Mark     int64          `json:"-"`                  // is stored with a message that is sent
	Life     Life           `json:"-"`
}

// Document is a file of text that the store keeps until it is sent.
type Document struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Life says what else becomes of a message.
type Life int

// The lives of messages.
const (
	Stays     Life = iota
	Returns        // it is sent again, once, if a user deletes it
	Changes        // it is to show something else yet: what the store has of it stays owed
	Goes           // it is deleted; where Telegram does not delete it, it shows the text
	OnlyEdits      // it is not sent if the chat does not have it
)

// Encode gives the content as the store keeps it.
func (c Content) Encode() []byte {
	data, _ := json.Marshal(c) // cannot fail: the content has strings and numbers only
	return data
}

func decode(data []byte) (c Content, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return Content{}, fmt.Errorf("decode the content of a message: %w", err)
	}
	return c, nil
}

// fingerprint is equal for contents that look the same in a chat.
func (c Content) fingerprint() string { return render.Fingerprint(c.Text) + fmt.Sprint(c.Keyboard) }
