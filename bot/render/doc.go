// Package render converts agents' Markdown into Telegram's format, which is plain text with message entities, and cuts
// long text into messages. It measures text in UTF-16 code units, as Telegram does.
//
// The package makes no requests and has no dependency on a Telegram library. It does not use Telegram's own Markdown or
// HTML ("parse modes"), so special characters cannot break a message.
//
// Markdown renders a complete source. Stream renders a source that grows, with the same result. Split cuts a Text into
// messages. Small functions such as Plain, Styled, Concat and Slice build messages.
package render

// Kind is a type of message entity, named as in the Bot API.
type Kind string

// The kinds of entities. Markdown returns all of them except Expandable.
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

// Entity formats a part of a text: Length UTF-16 units, starting at Offset.
type Entity struct {
	Kind     Kind
	Offset   int
	Length   int
	URL      string // only for Link
	Language string // only for Pre; may be empty
}

// End returns the offset of the first UTF-16 unit after the entity.
func (e Entity) End() int { return e.Offset + e.Length }

// raw reports whether k is a kind of code. Code cannot contain other entities, and only quotes can contain code.
func (k Kind) raw() bool { return k == Code || k == Pre }

func (k Kind) quote() bool { return k == Blockquote || k == Expandable }

// keepsIndent reports whether Telegram keeps white space at the start of an entity of this kind.
func (k Kind) keepsIndent() bool { return k.raw() || k.quote() }

// Text is plain text with formatting. Entities are sorted by offset; an outer entity precedes the entities in it.
type Text struct {
	Text     string   `json:"text"`
	Entities []Entity `json:"entities,omitempty"`
}
