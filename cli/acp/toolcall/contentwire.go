package toolcall

import (
	"encoding/json"
	"strings"
)

// Content is a part of a tool's output.
type Content struct {
	Type    string  `json:"type"` // content, diff or terminal
	Content Block   `json:"content"`
	Path    string  `json:"path"`
	OldText *string `json:"oldText"`
	NewText string  `json:"newText"`
	Meta    struct {
		Kind string `json:"kind"`
	} `json:"_meta"`
	Terminal string `json:"terminalId"`
	raw      json.RawMessage
}

// Contents is the output of a tool. In a message update, it consists of a single block.
type Contents []Content

// UnmarshalJSON accepts a list of tool contents, or a single block. Unreadable content becomes empty.
func (c *Contents) UnmarshalJSON(raw []byte) error {
	var list []Content
	var b Block
	if json.Unmarshal(raw, &list) != nil && json.Unmarshal(raw, &b) == nil {
		list = []Content{{Type: "content", Content: b}}
	}
	var each []json.RawMessage
	_ = json.Unmarshal(raw, &each) // fails for a single block
	for i := range min(len(each), len(list)) {
		list[i].raw = each[i]
	}
	*c = list
	return nil
}

// Text joins the texts of the contents with newlines.
func (c Contents) Text() string {
	var parts []string
	for _, one := range c {
		if text := one.Content.String(); one.Type == "content" && text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// edit returns the edit in a content of type "diff".
func (c Content) edit() Edit {
	e := Edit{Path: c.Path, Reported: c.Meta.Kind, After: c.NewText}
	if c.OldText != nil {
		e.Before = *c.OldText
	}
	return e
}

// AddVisible adds entries to the map visible: for each value of c that users see, the field's name with the given
// prefix and the value. If a diff changes nothing, users see only its path.
func (c Content) AddVisible(prefix string, visible map[string]string) {
	switch {
	case c.Type == "content" && c.Content.Type == "text":
		visible[prefix+"content.text"] = c.Content.Text
	case c.Type == "diff":
		visible[prefix+"path"] = c.Path
		e := c.edit()
		if e.Diff() == "" {
			return
		}
		visible[prefix+"newText"], visible[prefix+"oldText"] = e.After, e.Before
		if c.OldText == nil {
			visible[prefix+"oldText"] = "null"
		}
	}
}

// Block is a piece of content. Type determines which of the other fields are used.
type Block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	MIME string `json:"mimeType,omitempty"`
	Data string `json:"data,omitempty"`
	URI  string `json:"uri,omitempty"`
}

// String returns the text or the URI of the block. For blocks of other types, it returns a placeholder.
func (b Block) String() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource_link":
		return b.URI
	case "":
		return ""
	}
	return "[" + b.Type + "]"
}
