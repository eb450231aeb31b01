package updates

import (
	"encoding/json"

	"ductor/bot/tgapi"
	"ductor/lang"
)

// The wire types describe the fields of a Telegram update that ductor uses. ductor does not use the types of a Bot API
// library, because they may fail to decode an update that contains something new.

type wireUpdate struct {
	ID       int64         `json:"update_id"`
	Message  *wireMessage  `json:"message"`
	Edited   *wireMessage  `json:"edited_message"`
	Callback *wireCallback `json:"callback_query"`
	Stopped  *wireStopped  `json:"stopped_message_generation"`
}

// message returns the new or edited message of an update. For a button press, it returns the message with the button.
func (u *wireUpdate) message() *wireMessage {
	switch {
	case u.Callback != nil:
		return u.Callback.Message
	case u.Message != nil:
		return u.Message
	}
	return u.Edited
}

// wireStopped means that a user pressed Telegram's own Stop button below a draft. Drafts exist only in private chats,
// where the chat ID is also the ID of the user.
type wireStopped struct {
	Chat   wireChat `json:"chat"`
	Thread int      `json:"message_thread_id"`
}

// abort returns an /abort message, which has the same effect as the Stop button.
func (s *wireStopped) abort() *wireMessage {
	return &wireMessage{
		Chat: s.Chat, From: &wireUser{ID: s.Chat.ID}, Thread: s.Thread, InTopic: s.Thread != 0, Text: "/abort",
	}
}

type wireCallback struct {
	ID      string       `json:"id"`
	From    wireUser     `json:"from"`
	Message *wireMessage `json:"message"` // date 0: the bot cannot read the message
	Data    string       `json:"data"`
}

type wireMessage struct {
	ID         int       `json:"message_id"`
	Thread     int       `json:"message_thread_id"`
	InTopic    bool      `json:"is_topic_message"`
	From       *wireUser `json:"from"`
	SenderChat *wireChat `json:"sender_chat"` // set if a channel or an anonymous admin sent the message
	Chat       wireChat  `json:"chat"`
	Date       int64     `json:"date"`

	Text            string       `json:"text"`
	Secret          bool         `json:"ductor_secret"` // true if ductor removed the text because it is a secret
	Entities        []wireEntity `json:"entities"`
	Caption         string       `json:"caption"`
	CaptionEntities []wireEntity `json:"caption_entities"`
	MediaGroup      string       `json:"media_group_id"`
	Photo           []wirePhoto  `json:"photo"`
	Document        *wireFile    `json:"document"`
	Voice           *wireFile    `json:"voice"`
	Audio           *wireFile    `json:"audio"`
	Video           *wireFile    `json:"video"`
	VideoNote       *wireFile    `json:"video_note"`
	Location        *wirePlace   `json:"location"`
	Venue           *wireVenue   `json:"venue"` // if set, Location is set too
	Contact         *wireContact `json:"contact"`

	ReplyTo      *wireMessage    `json:"reply_to_message"`
	Quote        *wireQuote      `json:"quote"`
	Forwarded    *wireOrigin     `json:"forward_origin"`
	ViaBot       *wireUser       `json:"via_bot"` // inline bot with which the user created the message
	TopicCreated json.RawMessage `json:"forum_topic_created"`
	MigratedTo   int64           `json:"migrate_to_chat_id"`
	Pinned       *wireMessage    `json:"pinned_message"`
	Markup       wireMarkup      `json:"reply_markup"` // buttons; only for messages of the bot
}

type wireMarkup struct {
	Rows [][]struct {
		Text string `json:"text"`
		Data string `json:"callback_data"`
	} `json:"inline_keyboard"`
}

func (m wireMarkup) keyboard() (k tgapi.Keyboard) {
	for _, row := range m.Rows {
		var buttons []tgapi.Button
		for _, b := range row {
			buttons = append(buttons, tgapi.Button{Text: b.Text, Data: b.Data})
		}
		k = append(k, buttons)
	}
	return k
}

type wireUser struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
	Language  string `json:"language_code"`
}

type wireChat struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"` // private, group, supergroup or channel
	Title string `json:"title"`
}

type wireEntity struct {
	Type   string    `json:"type"`
	Offset int       `json:"offset"` // start in the text, in UTF-16 units
	Length int       `json:"length"`
	User   *wireUser `json:"user"`
	URL    string    `json:"url"`
	// programming language of a code block; otherwise empty
	Language string `json:"language"`
}

type wirePhoto struct {
	FileID string `json:"file_id"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Size   int64  `json:"file_size"`
}

type wireFile struct {
	FileID string `json:"file_id"`
	Name   string `json:"file_name"`
	MIME   string `json:"mime_type"`
	Size   int64  `json:"file_size"`
}

type wirePlace struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Live      int     `json:"live_period"` // duration of a live location in seconds; 0: not a live location
}

type wireVenue struct {
	Title   string `json:"title"`
	Address string `json:"address"`
}

type wireContact struct {
	Phone     string `json:"phone_number"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
}

type wireQuote struct {
	Text     string       `json:"text"`
	Entities []wireEntity `json:"entities"`
}

type wireOrigin struct {
	Type   string    `json:"type"`
	User   *wireUser `json:"sender_user"`
	Hidden string    `json:"sender_user_name"`
	Chat   *wireChat `json:"chat"`        // channel from which the message was forwarded
	Group  *wireChat `json:"sender_chat"` // group whose anonymous admin wrote the message
}

func (u wireUser) name() string {
	if u.LastName != "" {
		return u.FirstName + " " + u.LastName
	}
	return u.FirstName
}

func (c wireChat) private() bool { return c.Type == "private" }

// unsupported returns the name of a kind of message that agents cannot use, such as stickers. It returns "" for other
// messages, including service messages such as "joined the group".
func unsupported(raw []byte) lang.Key {
	var update struct {
		Message map[string]json.RawMessage `json:"message"`
	}
	if json.Unmarshal(raw, &update) != nil {
		return ""
	}
	for _, kind := range unsupportedKinds {
		if _, ok := update.Message[kind.field]; ok {
			return kind.say
		}
	}
	return ""
}

var unsupportedKinds = []struct {
	field string
	say   lang.Key
}{
	{"sticker", "updates.stickers"},
	{"animation", "updates.animations"},
	{"poll", "updates.polls"},
	{"dice", "updates.dice"},
	{"game", "updates.games"},
	{"story", "updates.stories"},
	{"paid_media", "updates.paid-media"},
	{"checklist", "updates.checklists"},
	{"rich_message", "updates.rich-messages"},
	{"invoice", "updates.invoices"},
}
