package telegram

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Entity formats a part of a text, as in the Bot API. Offset and Length count UTF-16 code units.
type Entity struct {
	Type          string `json:"type"`
	Offset        int    `json:"offset"`
	Length        int    `json:"length"`
	URL           string `json:"url,omitempty"`
	Language      string `json:"language,omitempty"`
	CustomEmojiID string `json:"custom_emoji_id,omitempty"`
	UserID        UserID `json:"-"`
}

func (e Entity) end() int { return e.Offset + e.Length }

// family defines how an entity may overlap other entities.
type family int

const (
	foundByServer family = iota // ignored in messages of the bot, because Telegram finds such entities itself
	splittable                  // is split where another entity begins or ends
	continuous                  // must not overlap another continuous entity, or the begin or end of a quoting entity
	quoting                     // must not overlap another quoting entity
	unknownFamily
)

func familyOf(kind string) family {
	switch kind {
	case "bold", "italic", "underline", "strikethrough", "spoiler":
		return splittable
	case "code", "pre", "text_link", "text_mention", "custom_emoji":
		return continuous
	case "blockquote", "expandable_blockquote":
		return quoting
	case "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number":
		return foundByServer
	}
	return unknownFamily
}

// priority orders entities that cover the same text. The outermost entity is the one with the smallest priority.
func priority(e Entity) int {
	switch e.Type {
	case "blockquote", "expandable_blockquote":
		return 0
	case "pre":
		return 11
	case "code":
		return 20
	case "text_link", "text_mention":
		return 49
	case "bold":
		return 90
	case "italic":
		return 91
	case "underline":
		return 92
	case "strikethrough":
		return 93
	case "spoiler":
		return 94
	case "custom_emoji":
		return 99
	}
	return 50
}

func isPre(kind string) bool { return kind == "pre" || kind == "code" }

func sortEntities(list []Entity) {
	slices.SortStableFunc(list, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length),
			cmp.Compare(priority(a), priority(b)))
	})
}

// wireEntity is an entity in a call. A field is nil if the call does not contain it.
type wireEntity struct {
	Type          *string  `json:"type"`
	Offset        *int     `json:"offset"`
	Length        *int     `json:"length"`
	URL           *string  `json:"url"`
	Language      string   `json:"language"`
	CustomEmojiID string   `json:"custom_emoji_id"`
	User          *idField `json:"user"`
}

type idField struct {
	ID UserID `json:"id"`
}

// parseEntities reads the entities in a call. Like the real server, it ignores invalid JSON and JSON that is not an
// array. An invalid element of an array is an error.
func parseEntities(text string) ([]Entity, *Error) {
	var raw []json.RawMessage
	if text == "" || json.Unmarshal([]byte(text), &raw) != nil {
		return nil, nil
	}
	var list []Entity
	for _, one := range raw {
		e, skip, err := parseEntity(one)
		if err != nil {
			return nil, err
		}
		if !skip {
			list = append(list, e)
		}
	}
	return list, nil
}

func parseEntity(raw json.RawMessage) (Entity, bool, *Error) {
	var w wireEntity
	if len(raw) == 0 || raw[0] != '{' {
		return Entity{}, false, badRequest("can't parse MessageEntity: expected an Object")
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return Entity{}, false, badRequest("can't parse MessageEntity: field of a wrong type")
	}
	if missing := w.missing(); missing != "" {
		return Entity{}, false, badRequest("can't parse MessageEntity: Can't find field %q", missing)
	}
	e := Entity{Type: *w.Type, Offset: *w.Offset, Length: *w.Length, Language: w.Language,
		CustomEmojiID: w.CustomEmojiID}
	switch familyOf(e.Type) {
	case foundByServer:
		return e, true, nil
	case unknownFamily:
		return e, false, badRequest("can't parse MessageEntity: Unsupported type specified")
	}
	if w.User != nil {
		e.UserID = w.User.ID
	}
	if e.Type != "pre" {
		e.Language = ""
	}
	if e.Type != "text_link" {
		return e, false, nil
	}
	link, ok := checkLink(*w.URL)
	e.URL = link
	return e, !ok, nil // Telegram drops the link and keeps its text
}

func (w wireEntity) missing() string {
	switch {
	case w.Offset == nil:
		return "offset"
	case w.Length == nil:
		return "length"
	case w.Type == nil:
		return "type"
	case *w.Type == "text_link" && w.URL == nil:
		return "url"
	case *w.Type == "text_mention" && w.User == nil:
		return "user"
	case *w.Type == "custom_emoji" && w.CustomEmojiID == "":
		return "custom_emoji_id"
	}
	return ""
}
