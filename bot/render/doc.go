// Package render converts agents' Markdown into the form that Telegram shows: plain text with message entities, and
// parts that fit into a message. It measures text in UTF-16 code units, as Telegram does.
//
// The package uses no network, no clock and no Telegram library. It never uses a parse mode, so no text can break the
// markup of a message.
//
// Markdown renders a complete source. Stream renders a growing source, with the same result. Split cuts a Text into
// messages. Smaller functions (Plain, Styled, Concat, Slice, ...) help to compose a card.
package render

// Kind is a type of Telegram message entities, spelled as in the Bot API.
type Kind string

// Entity kinds. Markdown produces all of them except Expandable.
const (
	Bold          Kind = "bold"
	Italic        Kind = "italic"
	Strikethrough Kind = "strikethrough"
	Code          Kind = "code"
	Pre           Kind = "pre"
	Link          Kind = "text_link"
	Blockquote    Kind = "blockquote"
	Expandable    Kind = "expandable_blockquote"
)

// Entity formats Length UTF-16 units of a text, starting at Offset.
type Entity struct {
	Kind     Kind
	Offset   int
	Length   int
	URL      string // only for Link
	Language string // only for Pre; may be empty
}

// End returns the offset after the entity.
func (e Entity) End() int { return e.Offset + e.Length }

// raw reports whether entities of this kind cannot contain other entities. They can only be inside quotes.
func (k Kind) raw() bool { return k == Code || k == Pre }

func (k Kind) quote() bool { return k == Blockquote || k == Expandable }

// keepsIndent reports whether whitespace at the start of an entity of this kind stays.
func (k Kind) keepsIndent() bool { return k.raw() || k.quote() }

// Text is plain text with entities. They are sorted by offset, outer entities first.
type Text struct {
	Text     string   `json:"text"`
	Entities []Entity `json:"entities,omitempty"`
}
