// Package render turns what agents write into what Telegram shows: Markdown into plain text with message
// entities, and long texts into parts that fit a message. It measures as Telegram does, in UTF-16 code units.
//
// It is pure: no network, no clock, no Telegram library. It never uses a parse mode, so no text can break
// the markup of a message.
//
// Markdown renders a whole source, Stream a growing one with the same result. Split cuts a Text into messages. The smaller functions
// (Plain, Styled, Concat, Slice, ...) are for putting a card together.
package render

// Kind is a Telegram message entity type, spelled as the Bot API spells it.
type Kind string

// The entity kinds. Markdown makes all of them but Expandable.
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
	URL      string // Link only
	Language string // Pre only; may be empty
}

// End is the first UTF-16 unit after the entity.
func (e Entity) End() int { return e.Offset + e.Length }

// raw says that nothing can be inside an entity of this kind, and that it can be inside quotes only.
func (k Kind) raw() bool { return k == Code || k == Pre }

func (k Kind) quote() bool { return k == Blockquote || k == Expandable }

// keepsIndent says that whitespace at the start of the entity means something and stays in it.
func (k Kind) keepsIndent() bool { return k.raw() || k.quote() }

// Text is plain text with the entities that format it, sorted by offset, the outer one first.
type Text struct {
	Text     string   `json:"text"`
	Entities []Entity `json:"entities,omitempty"`
}
