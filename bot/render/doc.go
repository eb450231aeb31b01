// Package render converts agents' Markdown into the form that Telegram shows: plain text with message entities, and
// parts that fit into a message. It measures text like Telegram, in UTF-16 code units.
//
// The package is pure: it uses no network, no clock and no Telegram library. It never uses a parse mode, so no text can
// break the markup of a message.
//
// Markdown renders a complete source. Stream renders a growing source, with the same result. Split cuts a Text into
// messages. The smaller functions (Plain, Styled, Concat, Slice, ...) help to compose a card.
package render

// Kind is a Telegram message entity type, spelled as the Bot API spells it.
type Kind string

// Entity kinds. Markdown produces all of them but Expandable.
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

// Entity formats Length UTF-16 units of a text from Offset on.
type Entity struct {
	Kind     Kind
	Offset   int
	Length   int
	URL      string // for Link
	Language string // for Pre; may be empty
}

// End returns the first UTF-16 unit after the entity.
func (e Entity) End() int { return e.Offset + e.Length }

// raw reports whether an entity of this kind cannot contain other entities. It can only be inside quotes.
func (k Kind) raw() bool { return k == Code || k == Pre }

func (k Kind) quote() bool { return k == Blockquote || k == Expandable }

// keepsIndent reports whether whitespace at the start of the entity is significant and stays in it.
func (k Kind) keepsIndent() bool { return k.raw() || k.quote() }

// Text is plain text with its entities, sorted by offset, the outer one first.
type Text struct {
	Text     string   `json:"text"`
	Entities []Entity `json:"entities,omitempty"`
}
