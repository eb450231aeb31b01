// Package render turns what agents write into what Telegram shows: Markdown into plain text with message
// entities, and long texts into parts that fit a message. It measures as Telegram does, in UTF-16 code units.
//
// It is pure: no network, no clock, no Telegram library. It never uses a parse mode, so no text can break
// the markup of a message.
package render

// Kind is a Telegram message entity type, spelled as the Bot API spells it.
type Kind string

// The entity kinds render makes.
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

// Text is plain text with the entities that format it, sorted by offset, the outer one first.
type Text struct {
	Text     string
	Entities []Entity
}
